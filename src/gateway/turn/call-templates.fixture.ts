import { compileChatTemplate } from "../../jinja/chat-template.ts";
import { bindTemplate } from "../../renderer/bound-template.ts";
import { toTemplateMessage, toTemplateTools } from "../../renderer/openai-messages.ts";
import { renderPrompt } from "../../renderer/render-prompt.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { characterRenderer } from "../../testing/character-renderer.ts";

const opening = `{%- for m in messages %}{% if m.role in ['system', 'user'] %}{{ m.role + ': ' + m.content + '\\n' }}`;
const closing = `{% endif %}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}`;
const said = `assistant: {{ m.content }}`;

/** Small chat templates, each with one habit of a published family. */
export const callTemplates = {
  /** Ids are printed as they are, as Kimi K2.5's template prints them. */
  printing: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<' + c.id + '|' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ 'result ' + m.tool_call_id + ' ' + m.name + ' ' + m.content + '\\n' }}${closing}`,

  /** Calls are numbered, and results printed under their own ids, as in Kimi K2's template. */
  numbering: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<functions.' + c.function.name + ':' + loop.index0|string + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ 'result ' + m.tool_call_id + ' ' + m.content + '\\n' }}${closing}`,

  /** Ids have nine letters and digits, as Mistral's. */
  nine: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{% if c.id|length != 9 %}{{ raise_exception('nine letters') }}{% endif %}{{ '<' + c.id + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{% if m.tool_call_id|length != 9 %}{{ raise_exception('nine letters') }}{% endif %}{{ 'result ' + m.tool_call_id + ' ' + m.content + '\\n' }}${closing}`,

  /** The name of a result is looked up by its id among all calls, as in Solar's template. */
  lookingUp: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ 'result of' }}{% for o in messages %}{% for c in o.tool_calls or [] %}{% if c.id == m.tool_call_id %}{{ ' ' + c.function.name }}{% endif %}{% endfor %}{% endfor %}{{ ': ' + m.content + '\\n' }}${closing}`,

  /** The first call of a turn is shown, and results under its name, as in the template of gpt-oss. */
  firstOnly: `{%- set last = namespace(name='') %}${opening}{% elif m.role == 'assistant' %}${said}
{%- if m.tool_calls %}{% set c = m.tool_calls[0] %}{% set last.name = c.function.name %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endif %}{{ '\\n' }}
{%- else %}{{ 'result of ' + last.name + ': ' + m.content + '\\n' }}${closing}`,

  /** Turns of several calls are refused, as in Llama 3.1's template. */
  single: `${opening}{% elif m.role == 'assistant' %}${said}
{%- if m.tool_calls|length > 1 %}{{ raise_exception('one call') }}{% endif %}
{%- for c in m.tool_calls or [] %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}{{ '\\n' }}
{%- else %}{{ 'result: ' + m.content + '\\n' }}${closing}`,
} as const;

/** The character renderer, whose prompts a template writes. */
export function templateRenderer(source: string): Renderer {
  const renderer = characterRenderer();
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
