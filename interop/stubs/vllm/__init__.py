"""In the place of vLLM, of which SGLang imports one kernel that nothing here calls."""
