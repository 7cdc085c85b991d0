/** The pairs of tags that models put around their thoughts, in small letters. */
const tagPairs: readonly (readonly [open: string, close: string])[] = [
  ...[
    "think",
    "thinking",
    "thought",
    "thoughts",
    "reasoning",
    "scratchpad",
    "analysis",
    "reflection",
    "inner_monologue",
    "longcat_think",
    "reasoning_scratchpad",
    "antthinking",
    "ifm|think",
    "ifm|think_fast",
    "ifm|think_faster",
  ].map((name) => [`<${name}>`, `</${name}>`] as const),
  ["<mm:think>", "</mm:think>"],
  ["<seed:think>", "</seed:think>"],
  ["[think]", "[/think]"],
  ["◁think▷", "◁/think▷"],
  ["<|think|>", "<|/think|>"],
  ["<|open|>think<|sep|>", "<|close|>think<|sep|>"],
  ["<|start_thinking|>", "<|end_thinking|>"],
  ["<|begin_of_thought|>", "<|end_of_thought|>"],
  ["<|channel>thought", "<channel|>"],
  ["<|inner_prefix|>", "<|inner_suffix|>"],
  ["<unused94>thought", "<unused95>"],
  ["here are my reasoning steps:", "[begin final response]"],
];

/** The pairs of tags that models put around their answers, in small letters; an answer may lack its end. */
const answerPairs: readonly (readonly [open: string, close: string])[] = [
  ...["answer", "response", "final", "solution"].map(
    (name) => [`<${name}>`, `</${name}>`] as const,
  ),
  ["<|begin_of_solution|>", "<|end_of_solution|>"],
  ["<|start_response|>", "<|end_response|>"],
  ["<|start_text|>", "<|end_text|>"],
  ["<|open|>response<|sep|>", "<|close|>response<|sep|>"],
];

const closeOf: ReadonlyMap<string, string> = new Map(tagPairs);

/**
 * A tag of any pair. White space, attributes and a stroke may stand at the end of a tag in angle brackets; a closing
 * one may have two strokes.
 */
const anyTag = new RegExp(tagPairs.flat().map(patternOf).join("|"), "gi");

function patternOf(tag: string): string {
  const quoted = quote(tag);
  if (tag === "<|/think|>") return `</?${quoted.slice(1)}`;
  if (!/^<\/?[a-z:_|]+>$/.test(tag) || tag.startsWith("<|")) return quoted;
  return `${quoted.replace("</", "</{1,2}").slice(0, -1)}(?:\\s[^<>]{0,200})?/?>`;
}

function quote(tag: string): string {
  return tag.replace(/[[\]|]/g, "\\$&");
}

/**
 * Leaves out of a reply what the model thought:
 *
 * - Each block in thought tags, at any place and in any number. A block without an end is all thought.
 * - What stands before a closing tag that nothing opened: many chat templates open it in the prompt.
 * - Each channel of gpt-oss but the final one, also where the server has removed the special tokens.
 * - Granite's thought process, which it ends in words; and the tags that models put around their answer.
 *
 * @returns the rest without the white space around the thoughts; `""` where all is thought,
 *   and the reply itself where nothing is.
 */
export function leaveOutThoughts(reply: string): string {
  return withoutAnswerTags(leaveOutBlocks(afterThoughtProcess(leaveOutChannels(reply))));
}

/**
 * Leaves out what Granite thought.
 *
 * **Source:** vllm-project/vllm vllm/reasoning/granite_reasoning_parser.py.
 */
function afterThoughtProcess(text: string): string {
  if (!/^\s*here(?: i|')s my thought process:/i.test(text)) return text;
  const [, ...responses] = text.split(/here(?: i|')s my response:/i);
  return responses.at(-1)?.trim() ?? "";
}

/**
 * Leaves out the tags around an answer.
 *
 * **Source:** vllm-project/vllm vllm/reasoning (`hunyuan_a13b`, `ernie45`, `apriel`).
 */
function withoutAnswerTags(text: string): string {
  for (const [open, close] of answerPairs) {
    const found = new RegExp(`^\\s*${quote(open)}([^]*?)(?:${quote(close)}\\s*)?$`, "i").exec(text);
    if (found !== null) return found[1]!.trim();
  }
  const end = text.lastIndexOf(finalEnd);
  const isLast =
    text
      .slice(end + finalEnd.length)
      .replace("<|end|>", "")
      .trim() === "";
  return end !== -1 && isLast ? text.slice(0, end).trim() : text;
}

const finalEnd = "[END FINAL RESPONSE]";

function leaveOutBlocks(text: string): string {
  let kept: string[] = [];
  let keptUpTo = 0;
  let awaited: string | undefined;
  for (const { 0: found, index } of text.matchAll(anyTag)) {
    const tag = plainTag(found);
    if (awaited === undefined) {
      awaited = found.endsWith("/>") && !found.startsWith("</") ? emptyBlock : closeOf.get(tag);
      // A closing tag without an opening one: all that was kept is thought.
      if (awaited === undefined) kept = [];
      else kept.push(text.slice(keptUpTo, index));
    } else if (tag === awaited) {
      awaited = undefined;
    }
    if (awaited === emptyBlock) awaited = undefined;
    keptUpTo = index + found.length;
  }
  if (keptUpTo === 0) return text;
  if (awaited === undefined) kept.push(text.slice(keptUpTo));
  return kept
    .map((piece) => piece.trim())
    .filter((piece) => piece !== "")
    .join("\n");
}

/** Stands for the end of a block whose tag closes itself. */
const emptyBlock = "/>";

function plainTag(found: string): string {
  const tag = found.toLowerCase();
  if (tag.endsWith("/think|>")) return "<|/think|>";
  return tag.replace("<//", "</").replace(/(?:\s[^<>]*|\/)>$/, ">");
}

const finalChannel = /<\|channel\|>final ?(?:<\|constrain\|> ?\w*)?<\|message\|>([^]*)$/;

/**
 * Leaves out the channels that a reply of gpt-oss has beside its final one.
 *
 * **Source:** openai/harmony docs/format.md; sgl-project/sglang python/sglang/srt/parser (what is left of
 * the format without its special tokens).
 */
function leaveOutChannels(text: string): string {
  if (text.includes("<|channel|>")) {
    const [, final = ""] = finalChannel.exec(text) ?? [];
    return final
      .split(/<\|(?:end|return|start|channel|call)\|>/, 1)
      .join("")
      .trim();
  }
  const bare = /^\s*(?:analysis[^]*?)?assistantfinal([^]*)$/.exec(text)?.[1];
  if (bare !== undefined) return bare.trim();
  // Cut before its final channel began. No English word goes on like this.
  return /^\s*analysis\p{Lu}/u.test(text) ? "" : text;
}
