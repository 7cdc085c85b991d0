import { compileChatTemplate } from "../../../packages/chat-template/src/chat-template.ts";
import { bindTemplate } from "../../renderer/bound-template.ts";
import { toTemplateMessage, toTemplateTools } from "../../renderer/openai-messages.ts";
import { renderPrompt } from "../../renderer/render-prompt.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { createCharacterRenderer } from "../../testing/character-renderer.ts";

const opening = `{%- for m in messages %}{% if m.role in ['system', 'user'] %}{{ m.role + ': ' + m.content + '\\n' }}`;
const closing = `{% endif %}{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}`;
const said = `assistant: {{ m.content }}`;
const called = `{%- for c in m.tool_calls or [] %}{{ '<' + c.function.name + c.function.arguments|tojson + '>' }}{% endfor %}`;
const answered = `{{ '\\n' }}{%- else %}{{ 'result: ' + m.content + '\\n' }}${closing}`;
/** Refuses an assistant turn after another, as Mistral's template does. */
const alternating = `{%- for m in messages %}{% if m.role == 'assistant' and not loop.first and loop.previtem.role == 'assistant' %}{{ raise_exception('roles must alternate') }}{% endif %}{% endfor %}`;
const textOrCalls = `${opening}{% elif m.role == 'assistant' %}assistant: {% if m.content %}{{ m.content }}{% else %}${called}{% endif %}${answered}`;
const callsOrText = `${opening}{% elif m.role == 'assistant' %}assistant: {% if m.tool_calls %}${called}{% else %}{{ m.content }}{% endif %}${answered}`;

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

  /** Prints no calls beside text, as vLLM's template for Phi 4 mini does. */
  textOrCalls,

  /** Prints no text beside calls, as Llama 3.1's template does. */
  callsOrText,

  /** Prints no calls beside text, and refuses consecutive assistant turns. */
  textOrCallsAlternating: alternating + textOrCalls,

  /** Prints no text beside calls, and refuses consecutive assistant turns, as Mistral's template does. */
  callsOrTextAlternating: alternating + callsOrText,

  /** Refuses reasoning and text beside calls, and prints reasoning only beside calls, as gpt-oss's template does. */
  textOrReasoning: `${opening}{% elif m.role == 'assistant' %}${said}
{%- if m.tool_calls and m.reasoning %}{% if m.content %}{{ raise_exception('not both') }}{% endif %}{{ '(' + m.reasoning + ')' }}{% endif %}${called}${answered}`,

  /** Prints reasoning, and no text beside calls. */
  reasoned: `${opening}{% elif m.role == 'assistant' %}assistant: {{ '(' + m.reasoning + ')' if m.reasoning }}
{%- if m.tool_calls %}${called}{% else %}{{ m.content }}{% endif %}${answered}`,

  /** Prints calls before the text of their turn, as Gemma 4's template does. */
  callsFirst: `${opening}{% elif m.role == 'assistant' %}assistant: ${called}{{ m.content }}${answered}`,

  /** Reads arguments as an object, as Qwen3-Coder's template does. */
  members: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<' + c.function.name }}{% for name, value in c.function.arguments|items %}{{ ' ' + name + '=' + value }}{% endfor %}>{% endfor %}${answered}`,

  /** Leaves out arguments that are no object, as GLM 4.6's template does. */
  membersIfAny: `${opening}{% elif m.role == 'assistant' %}${said}
{%- for c in m.tool_calls or [] %}{{ '<' + c.function.name }}{% if c.function.arguments is mapping %}{{ c.function.arguments|tojson }}{% endif %}>{% endfor %}${answered}`,
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
