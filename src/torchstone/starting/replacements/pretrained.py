"""Models, configurations and tokenizers of transformers without their files.

What lies in the cache of the machine is used as it is. Else the kind of model is read off its name,
as transformers itself does, and built in the default size of its configuration.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_ERRORS = (OSError, ValueError, ImportError, TypeError)
"""What transformers raises where a file cannot be fetched, or a way of loading it is not to be had here."""
_FEWEST_WORDS = 100
_OF_LOADING = frozenset(
    "return_unused_kwargs code_revision _commit_hash trust_remote_code _from_auto cache_dir token "
    "force_download local_files_only proxies resume_download revision subfolder use_auth_token "
    "user_agent commit_hash".split()
)
"""Keywords that a configuration takes for itself."""


def replace_pretrained(note: Callable[[str, str], None]) -> None:
    """From now on `from_pretrained` goes on without files."""
    auto = importlib.import_module("transformers.models.auto.configuration_auto")
    models = importlib.import_module("transformers.modeling_utils")
    factory = importlib.import_module("transformers.models.auto.auto_factory")
    tokens = importlib.import_module("transformers.models.auto.tokenization_auto")
    base = importlib.import_module("transformers.tokenization_utils_base")

    def configuration(name: Any) -> Any:
        known = sorted(auto.CONFIG_MAPPING.keys(), key=len, reverse=True)
        kind = next((item for item in known if item in str(name).lower()), "gpt2")
        note("transformers", f"{name}: the default configuration of {kind}")
        return auto.CONFIG_MAPPING[kind]()

    def make_config(cls: Any, name: Any, kwargs: dict[str, Any]) -> Any:
        made = configuration(name) if cls.__name__ == "AutoConfig" else cls()
        if not kwargs.get("return_unused_kwargs"):
            return made
        return made, {key: value for key, value in kwargs.items() if key not in _OF_LOADING}

    def make_model(cls: Any, name: Any, kwargs: dict[str, Any]) -> Any:
        given = kwargs.get("config")
        config = given if given is not None else configuration(name)
        if hasattr(cls, "_model_mapping"):
            return cls.from_config(config)
        wanted = cls.config_class
        return cls(config if isinstance(config, wanted) else wanted())

    def make_tokenizer(cls: Any, name: Any, kwargs: dict[str, Any]) -> Any:
        return _byte_tokenizer(int(kwargs.get("model_max_length") or 512))

    _fall_back(auto.AutoConfig, make_config)
    configs = importlib.import_module("transformers.configuration_utils")
    _fall_back(
        getattr(configs, "PreTrainedConfig", None) or configs.PretrainedConfig, make_config
    )  # spelled otherwise before version 5
    _fall_back(factory._BaseAutoModelClass, make_model)
    _fall_back(models.PreTrainedModel, make_model)
    _fall_back(tokens.AutoTokenizer, make_tokenizer)
    _fall_back(base.PreTrainedTokenizerBase, make_tokenizer)


def _fall_back(holder: Any, make: Callable[[Any, Any, dict[str, Any]], Any]) -> None:
    """`from_pretrained` as it is, and `make` where it finds no files."""
    original = vars(holder)["from_pretrained"].__func__

    def from_pretrained(cls: Any, name: Any = None, *args: Any, **kwargs: Any) -> Any:
        try:
            found = original(cls, name, *args, **kwargs)
        except _ERRORS:
            return make(cls, name, kwargs)
        # newer versions give a tokenizer without words where they find no file
        is_empty = hasattr(found, "get_vocab") and len(found) < _FEWEST_WORDS
        return make(cls, name, kwargs) if is_empty else found

    holder.from_pretrained = classmethod(from_pretrained)


def _byte_tokenizer(length: int) -> Any:
    """Every byte is a token; the special ones have the usual names."""
    tokenizers = importlib.import_module("tokenizers")
    fast = importlib.import_module("transformers").PreTrainedTokenizerFast
    special = ("<pad>", "<s>", "</s>", "<unk>", "<mask>", "<sep>", "<cls>")
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    words = {word: place for place, word in enumerate((*special, *sorted(alphabet)))}
    inner = tokenizers.Tokenizer(tokenizers.models.BPE(words, [], unk_token="<unk>"))
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    return fast(
        tokenizer_object=inner,
        model_max_length=length,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        sep_token="<sep>",
        cls_token="<cls>",
    )
