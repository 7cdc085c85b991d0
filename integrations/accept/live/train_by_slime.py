"""slime's own data source, group filter, conversion and loss over `turnwright serve`: steps of GRPO on a CPU.

In the place of slime's Megatron and SGLang: transformers, AdamW and the reference engine, which loads each step's
weights. Needs a build, torch, transformers and safetensors, slime's source in TURNWRIGHT_TRAINERS, and the Python
package:

    PYTHONPATH=integrations/python TURNWRIGHT_TRAINERS=FOLDER python integrations/accept/live/train_by_slime.py [steps, 3]
"""
import asyncio, json, os, pathlib, shutil, sys, tempfile, types
HERE = pathlib.Path(__file__).resolve()
os.environ["TRAINERS"] = os.environ["TURNWRIGHT_TRAINERS"]
sys.path.append(str(HERE.parents[1]))
from common import load_defs
sys.path = [place for place in sys.path if not place.endswith("accept")]  # slime.py there is no package
from started import ROOT, service
SLIME = f"{os.environ['TURNWRIGHT_TRAINERS']}/src/slime"
sys.path.insert(0, SLIME)
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM
from slime.rollout.data_source import RolloutDataSourceWithBuffer
from slime.utils.ppo_utils import compute_policy_loss
from slime.utils.types import Sample

STEPS, GROUPS, SAMPLES, MODEL = int(sys.argv[1]) if len(sys.argv) > 1 else 3, 2, 4, ROOT / "models/storefront-2m"
torch.set_num_threads(2)
Args = types.SimpleNamespace
sources = load_defs(f"{SLIME}/slime/utils/data.py", ["get_source"], {"Sample": Sample, "Any": object})
convert = load_defs(f"{SLIME}/slime/ray/rollout.py",
                    ["RolloutManager._post_process_rewards", "RolloutManager._convert_samples_to_train_data"],
                    {"torch": torch, "Sample": Sample, "validate_rollout_routed_experts_for_replay": None, **sources})


def to_train_data(args, samples):
    own = Args(args=args, custom_reward_post_process_func=None, custom_convert_samples_to_train_data_func=None)
    own._post_process_rewards = lambda given: convert["_post_process_rewards"](own, given)
    return convert["_convert_samples_to_train_data"](own, samples)


def train(model, optimizer, data):
    """Trains one step. Returns the largest distance of the first ratio from 1, and the same with logprobs moved by one."""
    far, shifted, count = 0.0, 0.0, 0
    optimizer.zero_grad()
    for i, tokens in enumerate(data["tokens"]):
        old, mask = torch.tensor(data["rollout_log_probs"][i]), torch.tensor(data["loss_masks"][i])
        logits = model(torch.tensor([tokens])).logits[0, -len(mask) - 1:-1]
        new = logits.log_softmax(-1).gather(1, torch.tensor(tokens[-len(mask):])[:, None])[:, 0]
        at = mask.bool()
        far = max(far, ((new - old).exp() - 1)[at].abs().max().item())
        shifted = max(shifted, ((new - old.roll(1)).exp() - 1)[at].abs().max().item())
        loss, _ = compute_policy_loss(old - new, torch.full_like(old, data["rewards"][i]), 0.2, 0.28)
        ((loss * mask).sum() / mask.sum() / len(data["tokens"])).backward()
        count += int(mask.sum())
    optimizer.step()
    return far, shifted, count


with tempfile.TemporaryDirectory() as work, service() as (url, _):
    os.environ.update(TURNWRIGHT_URL=url, TURNWRIGHT_SPLIT="train", TURNWRIGHT_RUN="slime-on-a-cpu")
    from turnwright.trainers import slime, slime_batch, take_over

    tasks = pathlib.Path(work, "tasks.jsonl")
    tasks.write_text("".join(json.dumps({"prompt": str(i), "metadata": {"split": "train"}}) + "\n" for i in range(12)))
    args = Args(
        prompt_data=str(tasks), input_key="prompt", metadata_key="metadata", label_key=None, multimodal_keys=None,
        tool_key=None, apply_chat_template=False, apply_chat_template_kwargs={}, rollout_max_prompt_len=None,
        rollout_global_dataset=True, rollout_shuffle=True, rollout_seed=42, hf_checkpoint=str(MODEL), dump_details=None,
        buffer_filter_path=None, n_samples_per_prompt=SAMPLES, rollout_batch_size=GROUPS, rollout_temperature=1.0,
        rollout_top_p=1.0, custom_reward_post_process_path=None, reward_key=None, advantage_estimator="grpo",
        rewards_normalization=True, grpo_std_normalization=True, use_rollout_routing_replay=False,
        dynamic_sampling_filter_path="slime.rollout.filter_hub.dynamic_sampling_filters.check_reward_nonzero_std")
    source, model = RolloutDataSourceWithBuffer(args), AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), weight_decay=0.1)

    class Published(take_over.Versions):
        """Updates the engines as slime does before it requests a step."""

        def announce(self, client, version, weights=None):
            folder = pathlib.Path(work, f"step-{version}")
            shutil.copytree(MODEL, folder)
            state = {name: value.detach().contiguous() for name, value in model.state_dict().items() if name != "lm_head.weight"}
            save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
            super().announce(client, version, str(folder))

    slime_batch.versions = Published()
    for step in range(STEPS):
        groups = slime_batch.generate_rollout(args, step, source).samples
        samples = [sample for group in groups for sample in group]
        assert [len(group) for group in groups] == [SAMPLES] * GROUPS
        assert {version for sample in samples for version in sample.weight_versions} == {str(step)}
        assert all(len({sample.reward for sample in group}) > 1 for group in groups), "the filter kept what differs"
        far, shifted, count = train(model, optimizer, to_train_data(args, samples))
        print(json.dumps({"step": step, "drawn": source.sample_group_index, "trained": count, "ratio": far,
                          "shifted": shifted, "reward": sum(one.reward for one in samples) / len(samples)}), flush=True)
        assert far < 2e-3 < shifted
    done = asyncio.run(slime.generate(args, Sample(index=0, prompt="3", metadata={"split": "test"}), {}, evaluation=True))
    assert done.weight_versions[0] == str(STEPS - 1) and done.reward is not None
    from turnwright.trainers.play import connect
    assert connect().health()["unreadGroups"] == 0, "what slime took is forgotten"
print(f"slime: {STEPS} steps of its own loss: accepted")
