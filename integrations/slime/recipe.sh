#!/usr/bin/env bash
# The recipe of slime's τ-bench example over Turnwright's rollout service. Run it in slime's folder, with
# the arguments of your model and cluster (slime's scripts/models/*.sh) in MODEL_ARGS.
set -euo pipefail
: "${TURNWRIGHT_URL:?the address of the rollout service}" "${MODEL:?a Hugging Face folder}"
export TURNWRIGHT_URL TURNWRIGHT_SPLIT="${TURNWRIGHT_SPLIT:-train}"
work="${WORK:-runs/slime}"
# The same name at each start. Clears the requests of an earlier start.
export TURNWRIGHT_RUN="${TURNWRIGHT_RUN:-$work}"
mkdir -p "$work"
python -m turnwright.slime_tasks --split "$TURNWRIGHT_SPLIT" --tasks "${TASKS:-0-499}" > "$work/train.jsonl"
python -m turnwright.slime_tasks --split "${DEV_SPLIT:-dev}" --tasks "${DEV_TASKS:-0-19}" > "$work/dev.jsonl"

# shellcheck disable=SC2086
exec python train.py ${MODEL_ARGS:-} \
  --hf-checkpoint "$MODEL" \
  --prompt-data "$work/train.jsonl" --input-key prompt --metadata-key metadata --rollout-shuffle \
  --rollout-function-path turnwright.trainers.slime_batch.generate_rollout \
  --custom-generate-function-path turnwright.trainers.slime.generate \
  --num-rollout "${STEPS:-500}" --rollout-batch-size 32 --n-samples-per-prompt 8 --global-batch-size 256 \
  --rollout-max-response-len 1024 --rollout-temperature 1 --balance-data \
  --custom-reward-post-process-path turnwright.trainers.slime_rewards.by_attempt \
  --dynamic-sampling-filter-path turnwright.trainers.slime_rewards.differ \
  --use-dynamic-batch-size --max-tokens-per-gpu "${MAX_TOKENS_PER_GPU:-9216}" \
  --eval-interval 5 --eval-prompt-data retail-dev "$work/dev.jsonl" --n-samples-per-eval-prompt 1 \
  --eval-max-response-len 1024 --eval-top-k 1 \
  --advantage-estimator grpo --use-kl-loss --kl-loss-coef 0 --eps-clip 0.2 --eps-clip-high 0.28 \
  --optimizer adam --lr 1e-6 --lr-decay-style constant --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.98 \
  --use-tis
