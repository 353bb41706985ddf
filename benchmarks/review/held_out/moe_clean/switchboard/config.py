import argparse


def get_args(argv=None):
    p = argparse.ArgumentParser("switchboard")
    # model
    p.add_argument("--vocab", type=int, default=32)
    p.add_argument("--classes", type=int, default=8)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--hidden", type=int, default=48)
    p.add_argument("--layers", type=int, default=2)
    p.add_argument("--experts", type=int, default=8)
    p.add_argument("--topk", type=int, default=2)
    p.add_argument("--capacity-factor", type=float, default=1.5)
    p.add_argument("--route-scale", type=float, default=1.0)
    p.add_argument("--jitter", type=float, default=0.05)
    # balance
    p.add_argument("--aux-weight", type=float, default=0.01)
    p.add_argument("--bias-rate", type=float, default=0.005)
    # optimisation
    p.add_argument("--steps", type=int, default=40)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--seq", type=int, default=24)
    p.add_argument("--lr", type=float, default=3e-3)
    p.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--save", default="")
    p.add_argument("--resume", default="")
    args = p.parse_args(argv)
    if args.topk > args.experts:
        p.error("--topk is larger than --experts")
    return args
