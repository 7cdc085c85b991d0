/** A model folder whose template rewrites the history, so that `--history split` gives several rows. */
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

const callStart = "{%- for call in message";
const callArguments = "{{- call.function.arguments if";

/** Copies a model folder. The copy's template leaves out the arguments of calls before the last user message. */
export function copyWithRewriting(from, to) {
  cpSync(from, to, { recursive: true });
  const file = path.join(to, "tokenizer_config.json");
  const config = JSON.parse(readFileSync(file, "utf8"));
  const template = config.chat_template;
  for (const part of [callStart, callArguments]) {
    if (!template.includes(part)) throw new Error(`The template of ${from} has no ${part}`);
  }
  const findLast =
    "{%- set last = namespace(user=-1) %}{%- for message in messages %}{%- if message.role == 'user' %}" +
    "{%- set last.user = loop.index0 %}{%- endif %}{%- endfor %}";
  const rewritten = template
    .replace(callStart, `{%- set place = loop.index0 %}${callStart}`)
    .replace(callArguments, callArguments.replace("{{-", "{{- '{}' if place < last.user else"));
  writeFileSync(file, JSON.stringify({ ...config, chat_template: findLast + rewritten }));
}
