"""Replaces vLLM, from which SGLang imports one kernel that is never called here."""
