import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import { bindTemplate } from "../../renderer/bound-template.ts";
import { toTemplateMessage, toTemplateTools } from "../../renderer/openai-messages.ts";
import { renderPrompt } from "../../renderer/render-prompt.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { createCharacterRenderer } from "../../testing/character-renderer.ts";

const opening = `{%- for m in messages %}{% if m.role in ['system', 'user'] %}{{ m.role + ': ' + m.content + '\\n' }}`;
const closing = `{% endif %}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}`;
const said = `assistant: {{ m.content }}`;

/** Small chat templates, each with one rule of a published family. */
export const callTemplates = {
  /** Prints ids unchanged, and names. */
  printing: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<' + c.id + '|' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ 'result ' + m.tool_call_id + ' ' + m.name + ' ' + m.content + '\\n' }}${closing}`,

  /** Prints ids unchanged, and no names of calls, as Kimi K2.5's template does. */
  naming: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<' + c.id + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ m.name + ': result of ' + m.tool_call_id + ' ' + m.content + '\\n' }}${closing}`,

  /** Prints results but no calls, as LFM2's template does. */
  dropping: `${opening}{% elif m.role == 'assistant' %}${said}{{ '\\n' }}
{%- else %}{{ 'result: ' + m.content + '\\n' }}${closing}`,

  /** Numbers calls, and prints results under their own ids, as Kimi K2's template does. */
  numbering: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<functions.' + c.function.name + ':' + loop.index0|string + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ 'result ' + m.tool_call_id + ' ' + m.content + '\\n' }}${closing}`,

  /** Requires ids of nine letters and digits, as Mistral's does. */
  nine: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception('nine letters') }}{% endif %}{{ '<' + c.id + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{% if m.tool_call_id|length != 9 %}{{ raise_exception('nine letters') }}{% endif %}{{ 'result ' + m.tool_call_id + ' ' + m.content + '\\n' }}${closing}`,

  /** Looks up a result's name by its id among all calls, as Solar's does. */
  lookingUp: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ 'result of' }}{% for o in messages %}{% for c in o.tool_calls or [] %}{% if c.id == m.tool_call_id %}{{ ' ' + c.function.name }}{% endif %}{% endfor %}{% endfor %}{{ ': ' + m.content + '\\n' }}${closing}`,

  /** Prints the first call of a turn, and results under its name, as gpt-oss's does. */
  firstOnly: `{%- set last = namespace(name='') %}${opening}{% elif m.role == 'assistant' %}${said}
{%- if m.tool_calls %}{% set c = m.tool_calls[0] %}{% set last.name = c.function.name %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endif %}{{ '\\n' }}
{%- else %}{{ 'result of ' + last.name + ': ' + m.content + '\\n' }}${closing}`,

  /** Refuses turns with several calls, as Llama 3.1's does. */
  single: `${opening}{% elif m.role == 'assistant' %}${said}
{%- if m.tool_calls|length > 1 %}{{ raise_exception('one call') }}{% endif %}
{%- for c in m.tool_calls or [] %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ 'result: ' + m.content + '\\n' }}${closing}`,
} as const;

/** Returns a character renderer with the given template. */
export function templateRenderer(source: string): Renderer {
  const renderer = createCharacterRenderer();
  const template = bindTemplate(compileChatTemplate(source), new Map(), new Date(0));
  return {
    ...renderer,
    async prompt({ messages, tools }) {
      const shaped = {
        messages: messages.map(toTemplateMessage),
        tools: toTemplateTools(tools),
        addGenerationPrompt: true,
      };
      const text = renderPrompt(template, shaped, "the template of a test");
      return { text, ids: await renderer.codec.encode(text) };
    },
  };
}
