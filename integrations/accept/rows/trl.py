"""TRL: the shim's GRPOTrainer over all rows of a batch; AsyncGRPOTrainer's batches, packing and loss over its samples."""
from several_rows import *

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
import types
from collections import defaultdict

import torch
from datasets import Dataset
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from trl import GRPOConfig
from trl.experimental.async_grpo import async_grpo_trainer as asynchronous
from trl.trainer.utils import split_tensor_dict
from turnwright.trainers.several_rows import group_advantages
from turnwright.trainers.trl import RecordedGRPOTrainer, env_reward
from turnwright.trainers.trl_groups import columns_of
from turnwright.trainers.trl_sample import to_samples

S, run = types.SimpleNamespace, opened()


def rollout(prompts, trainer):
    """As the function of make_rollout_func(), without the service."""
    trainer.rows_by_attempt = [a.handed_over().responses() for a in run.attempts]
    return columns_of([(rows[0], a.reward) for rows, a in zip(trainer.rows_by_attempt, run.attempts)])


def trainer_of(loss_type, parts):
    ids = max(2944, 1 + max(i for _, row in run.pairs for i in row["tokenIds"]))
    tiny = LlamaConfig(vocab_size=ids, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1)
    args = GRPOConfig(output_dir=os.environ["TMPDIR"] + "/rows-trl", use_cpu=True, bf16=False, per_device_train_batch_size=len(run.attempts) // parts,
                      gradient_accumulation_steps=parts, num_generations=len(run.groups[0]), max_steps=1, report_to=[], beta=0.0,
                      gradient_checkpointing=False, loss_type=loss_type)
    made = RecordedGRPOTrainer(
        model=LlamaForCausalLM(tiny), reward_funcs=env_reward, rollout_func=rollout, args=args,
        processing_class=AutoTokenizer.from_pretrained(os.environ["MODEL"]), train_dataset=Dataset.from_dict({"prompt": ["x"]}))
    made.model.train()
    made.current_gradient_accumulation_steps = parts
    return made


def weights_of(trainer, batch):
    """Over the parts that the trainer cuts the batch into, at an advantage of 1."""
    found = []
    for part in split_tensor_dict({**batch, "advantages": torch.ones_like(batch["advantages"])}, trainer.args.steps_per_generation):
        leaf = part["old_per_token_logps"].clone().requires_grad_()
        # The model is stood in for: over long rows it needs more memory than most machines have.
        trainer._get_per_token_logps_and_entropies = lambda *_, **__: (leaf, torch.zeros_like(leaf), None)
        found += trained(gradients(trainer._compute_loss(trainer.model, part), leaf), part["completion_mask"] * part["tool_mask"])
    return found


for loss_type, parts in (("dapo", 1), ("dapo", 2), ("cispo", 1)):
    trainer = trainer_of(loss_type, parts)
    batch = trainer._generate_and_score_completions([{"prompt": a.group} for a in run.attempts])
    for (_, row), ids in zip(run.pairs, batch["completion_ids"].tolist()):
        same(ids[:len(response(row)[1])], response(row)[1], "completion_ids")
    # Rows without trained tokens may fill the parts up.
    run.check_advantages(batch["advantages"].tolist()[:len(run.pairs)], "std", tolerance=1e-3)
    weights = weights_of(trainer, batch)
    assert all(own == [] for own in weights[len(run.pairs):])
    run.check_weights(weights[:len(run.pairs)], "token")

samples = []
for number, group in enumerate(run.groups):
    for a, own in zip(group, group_advantages([a.reward for a in group], over_std=False)):
        samples += to_samples(a.handed_over(), own, number)
run.check_advantages([s.advantage for s in samples], "mean")


def packed_weights():
    """One micro-batch by the planner, the packer and the loss. The model is stood in for."""
    items = [dict(input_ids=s.input_ids, completion_mask=s.completion_mask, old_log_probs=s.old_log_probs * 0, advantage=1.0,
                  group_id=s.group_id, metrics={}) for s in samples]
    places, found = {id(item): place for place, item in enumerate(items)}, [[] for _ in items]
    batches = list(asynchronous.FixedCountBatcher(items, 1, len(items)))
    for (packed,) in batches:
        own = asynchronous.DataCollatorForRollout(0, 1, metrics=defaultdict(list))([[packed]])
        size = int(own["attention_mask"].sum())
        leaf = torch.zeros(1, size, requires_grad=True)
        me = S(aux_loss_enabled=False, epsilon_low=0.2, epsilon_high=0.2, current_gradient_accumulation_steps=len(batches),
               accelerator=S(num_processes=1, reduce=lambda x, reduction: x, gather=lambda x: x.reshape(-1)),
               _metrics={"train": defaultdict(list)}, _step_forward_tokens=0, _step_trained_tokens=0, _step_seq_len_weighted=0,
               _step_samples=0, _step_forward_s=0)
        loss = asynchronous.AsyncGRPOTrainer.compute_loss(me, lambda **_: S(log_probs=leaf, entropy=torch.zeros(1, size)), own)
        # A token of a prefix that rows share stands once in the packed row.
        index = own["token_index"][own["token_index"] >= 0]
        each = (gradients(loss, leaf).flatten() / torch.bincount(index, minlength=size).clamp(min=1))[index]
        segment = own["segment_id"][own["token_index"] >= 0]
        for place, item in enumerate(packed.samples):
            found[places[id(item)]] = each[segment == place].tolist()
    return found


run.check_weights(packed_weights(), "token")
run.done("trl", "GRPOTrainer live by token", "AsyncGRPOTrainer live by token in one micro-batch")
