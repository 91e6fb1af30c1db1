#!/usr/bin/env bash
# Installs Keras, Lightning and the Hugging Face Trainer beside Debian's PyTorch into a virtual environment, in versions
# that work with it, for the callbacks in python/tests/test_callbacks.py. Takes a minute or two the first time and no time
# after that. Usage: tools/frameworks_venv.sh [FOLDER=build/frameworks]
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-build/frameworks}
# All of them named: left to itself pip would bring a PyTorch of its own, with gigabytes for GPUs.
wanted="
  keras==3.0.5 jax==0.4.26 jaxlib==0.4.26 opt-einsum==3.3.0 scipy==1.13.1 ml-dtypes==0.3.2 absl-py==2.1.0 namex==0.0.8
  h5py==3.11.0 dm-tree==0.1.8 rich==13.7.1 markdown-it-py==3.0.0 mdurl==0.1.2 pygments==2.18.0
  pytorch-lightning==1.9.5 lightning-utilities==0.10.1 torchmetrics==0.11.4 fsspec==2023.12.2
  transformers==4.40.2 accelerate==0.30.1 tokenizers==0.19.1 safetensors==0.4.3 huggingface-hub==0.23.5 regex==2024.5.15
  filelock==3.14.0 psutil==5.9.8 tqdm==4.66.4 packaging==24.0 pyyaml==6.0.1 requests==2.32.3 urllib3==2.2.1 idna==3.7
  certifi==2024.6.2 charset-normalizer==3.3.2"
[ "$(cat "$folder/voda.stamp" 2>/dev/null)" != "$wanted" ] || exit 0

echo "frameworks: installing into $folder"
rm -rf "$folder"
/usr/bin/python3 -m venv --system-site-packages "$folder"
# shellcheck disable=SC2086  # many words
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps $wanted
echo "$wanted" >"$folder/voda.stamp"
