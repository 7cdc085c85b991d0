/** Small chat templates, each with one trait of a published family. */
export const sampleTemplates = {
  /** ChatML; keeps reasoning unless the history is cleared of it, which `clear_thinking` prevents. */
  clearing: `{% set last = namespace(user=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set last.user = loop.index0 %}{% endif %}{% endfor %}
{%- if tools %}{{ '<|im_start|>system\\n' + tools|tojson + '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}
{%- if m.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if m.reasoning_content and ((clear_thinking is defined and not clear_thinking) or loop.index0 > last.user) %}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- m.content }}
{%- for c in m.tool_calls or [] %}{{ '<tool_call>' + c.function|tojson + '</tool_call>' }}{% endfor %}
{{- '<|im_end|>\\n' }}
{%- else %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`,

  /** A turn is closed only by the opener of the next one. */
  opening: `[gMASK]
{%- for m in messages %}
{%- if m.role == 'tool' %}{% if messages[loop.index0 - 1].role != 'tool' %}{{ '<|observation|>' }}{% endif %}{{ '\\n' + m.content }}
{%- else %}{{ '<|' + m.role + '|>\\n' + m.content }}{% for c in m.tool_calls or [] %}{{ c.function|tojson }}{% endfor %}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}`,

  /** The token that closes a turn in the history differs from the sampled one. */
  returning: `{%- for m in messages %}
{%- if m.role == 'assistant' and m.tool_calls %}{{ '<|start|>assistant to=' + m.tool_calls[0].function.name + '<|message|>' + m.tool_calls[0].function.arguments|tojson + '<|call|>' }}
{%- elif m.role == 'assistant' %}{{ '<|start|>assistant<|message|>' + m.content + ('<|return|>' if loop.last and not add_generation_prompt else '<|end|>') }}
{%- else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start|>assistant{% endif %}`,

  /** Tool results are silently skipped. */
  deaf: `{%- for m in messages if m.role != 'tool' %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}`,

  /** The tools stand before the latest user message, so they move. */
  moving: `{%- for m in messages %}
{%- if m.role == 'user' %}
{%- if tools and messages[loop.index0 + 1:]|selectattr('role', 'equalto', 'user')|list|length == 0 %}{{ '[AVAILABLE_TOOLS]' + tools|tojson + '[/AVAILABLE_TOOLS]' }}{% endif %}
{{- '[INST]' + m.content + '[/INST]' }}
{%- elif m.role == 'tool' %}{{ '[TOOL_RESULTS]' + m.content + '[/TOOL_RESULTS]' }}
{%- elif m.role == 'assistant' %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ '[TOOL_CALLS]' + c.function|tojson }}{% endfor %}{{ '</s>' }}{% endif %}
{%- endfor %}`,

  /** Results are numbered over the whole conversation. */
  counting: `{%- set count = namespace(tools=0) %}
{%- for m in messages %}
{%- if m.role == 'tool' %}{% set count.tools = count.tools + 1 %}{{ '<|tool|>' ~ count.tools ~ ': ' ~ m.content ~ '<|end|>' }}
{%- else %}{{ '<|' + m.role + '|>' + m.content }}{% for c in m.tool_calls or [] %}{{ c.function|tojson }}{% endfor %}{{ '<|end|>' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}`,

  /** The generation prompt opens a reasoning block that the history never shows. */
  thinking: `{%- for m in messages %}
{%- set content = m.content.split('</think>')[-1].lstrip('\\n') if m.role == 'assistant' else m.content %}
{{- '<|im_start|>' + m.role + '\\n' + content }}{% for c in m.tool_calls or [] %}{{ c.function|tojson }}{% endfor %}{{ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}`,

  /** Call arguments are concatenated with the text, so they must be text. */
  joining: `{%- for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name + c.function.arguments }}{% endfor %}{{ '<|end|>' }}{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}`,

  /** No control tokens. */
  plain: `{%- for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}`,
} as const;
