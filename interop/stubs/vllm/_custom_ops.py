"""The one kernel that SGLang imports."""


def rotary_embedding(*_args, **_options):
    raise RuntimeError("vllm._custom_ops.rotary_embedding is not there")
