# Torchstone with the CPU build of torch: docker run --rm -v "$PWD:/project" torchstone review .
FROM python:3.11-slim

# the compiler builds the C passes of watch and tensor; without it they run in numpy
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev git \
    && rm -rf /var/lib/apt/lists/*

RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu
WORKDIR /torchstone
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip install --no-cache-dir ".[watch,tensors,gguf,hf,mcp]"

# the project is mounted here; nothing of it runs as root
RUN useradd --create-home user
USER user
WORKDIR /project
ENTRYPOINT ["torchstone"]
CMD ["--help"]
