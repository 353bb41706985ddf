# Torchstone with torch: docker run --rm -v "$PWD:/project" torchstone review .
FROM python:3.11-slim

# the compiler builds the C passes of watch and tensor; without it they run in numpy
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev git \
    && rm -rf /var/lib/apt/lists/*

# --build-arg TORCH="torch --index-url ADDRESS" takes a build from another index: one for the CPU is much smaller
ARG TORCH=torch
RUN pip install --no-cache-dir $TORCH
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
