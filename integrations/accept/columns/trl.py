"""TRL: the samples of AsyncDistillationTrainer, its collator, and the support of its divergence."""
from column_rows import *

import os
import sys
import types

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
import torch
from trl.experimental.async_distillation.async_distillation_trainer import DataCollatorForRollout, _narrow_top1_actual_support
from turnwright.trainers.trl_distillation import ExportedRows

worker = ExportedRows(sys.argv[4], ahead=100)
worker.start()
records = taught()
samples = [worker.rollout_buffer.get(timeout=20) for _ in records]
worker.stop()
refused("rows after the last one", lambda: worker.check_health(60))
names = ("input_ids", "completion_mask", "teacher_topk_ids", "teacher_topk_logprobs", "teacher_id", "prompt_id", "metrics")
for record, sample in zip(records, samples):
    collator = DataCollatorForRollout(pad_token_id=0)
    collator._log_metrics = lambda **_: None
    batch = collator.torch_call([[[{name: getattr(sample, name) for name in names}]]])
    ids, mask = batch["input_ids"][0].tolist(), batch["completion_mask"][0].bool()
    assert (ids, batch["completion_mask"][0].tolist()) == (record["sample"]["input_ids"], record["sample"]["completion_mask"])
    count = batch["teacher_topk_ids"].shape[-1] - 1
    found, logprobs, actual = batch["teacher_topk_ids"][:, 1:], batch["teacher_topk_logprobs"][:, 1:], batch["input_ids"][:, 1:]
    trained = [token for token in range(1, len(ids)) if mask[token]]
    for token in trained:
        top, own = teacher_top(ids, token, count), found[0, token - 1].tolist()
        assert (own[:count], logprobs[0, token - 1, :count].tolist()) == top
        assert ids[token] in own
    for beta, width in ((1.0, 1), (0.5, 2)):
        support, chosen, valid = _narrow_top1_actual_support(found, logprobs, actual, found != -1, beta)
        for token in trained:
            assert support.shape[-1] == width and chosen[0, token - 1, -1] == teacher_logprob(ids, token)
            assert bool(valid[0, token - 1].any())
print(f"trl: {len(samples)} samples distilled: accepted")
