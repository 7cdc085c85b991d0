/** Pairs of tags around reasoning, in lower case. */
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

/** Pairs of tags around answers, in lower case. The closing tag may be missing. */
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

/** A whole answer between the tags of each pair. The closing tag may be missing. */
const answerForms = answerPairs.map(
  ([open, close]) => new RegExp(`^\\s*${quote(open)}([^]*?)(?:${quote(close)}\\s*)?$`, "i"),
);

/**
 * Matches a tag of any pair. A tag in angle brackets may end with white space, attributes and a
 * slash. A closing tag may have two slashes.
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
 * Removes the reasoning from a reply:
 *
 * - Every block in reasoning tags. A block without an end is reasoning up to the end of the text.
 * - The text before a closing tag without an opening tag, because many chat templates open it in
 *   the prompt.
 * - Every channel of gpt-oss except the final one, even if the server removed the special tokens.
 * - Granite's thought process, which ends with a sentence, and tags around the answer.
 * - A turn that the model invents after its own: a line such as `Human` before a block, and all text from there.
 *
 * @returns the remaining text without white space around the removed parts, `""` if all text is
 *   reasoning, and the unchanged reply if none is.
 */
export function leaveOutThoughts(reply: string): string {
  return withoutAnswerTags(removeBlocks(afterThoughtProcess(removeChannels(reply))));
}

/**
 * Removes Granite's reasoning.
 *
 * **Source:** vllm-project/vllm vllm/reasoning/granite_reasoning_parser.py.
 */
function afterThoughtProcess(text: string): string {
  if (!/^\s*here(?: i|')s my thought process:/i.test(text)) return text;
  const [, ...responses] = text.split(/here(?: i|')s my response:/i);
  return responses.at(-1)?.trim() ?? "";
}

/**
 * Removes the tags around an answer.
 *
 * **Source:** vllm-project/vllm vllm/reasoning (`hunyuan_a13b`, `ernie45`, `apriel`).
 */
function withoutAnswerTags(text: string): string {
  for (const form of answerForms) {
    const found = form.exec(text);
    if (found !== null) return found[1]!.trim();
  }
  const end = text.lastIndexOf(finalEnd);
  if (end === -1) return text;
  const rest = text.slice(end + finalEnd.length).replace("<|end|>", "");
  return rest.trim() === "" ? text.slice(0, end).trim() : text;
}

const finalEnd = "[END FINAL RESPONSE]";

function removeBlocks(text: string): string {
  const kept = new KeptPieces();
  let keptUpTo = 0;
  let awaited: string | undefined;
  for (const { 0: found, index } of text.matchAll(anyTag)) {
    const tag = plainTag(found);
    if (awaited === undefined) {
      const close = closeOf.get(tag);
      // A closing tag without an opening one: all text before it is reasoning.
      if (close === undefined) kept.clear();
      else kept.addBeforeBlock(text.slice(keptUpTo, index));
      // A self-closing tag opens no block.
      awaited = found.endsWith("/>") ? undefined : close;
    } else if (tag === awaited) {
      awaited = undefined;
    }
    keptUpTo = index + found.length;
  }
  if (keptUpTo === 0) return text;
  if (awaited === undefined) kept.add(text.slice(keptUpTo));
  return kept.join();
}

/** The pieces of a reply that are not reasoning, up to a turn that the model invents after its own. */
class KeptPieces {
  #pieces: string[] = [];
  #isOver = false;

  add(piece: string): void {
    const text = piece.trim();
    if (!this.#isOver && text !== "") this.#pieces.push(text);
  }

  addBeforeBlock(piece: string): void {
    const said = piece.replace(turnLabel, "");
    this.add(said);
    // The first label may be the speaker's own.
    if (said !== piece && this.#pieces.length > 0) this.#isOver = true;
  }

  clear(): void {
    this.#pieces = [];
    this.#isOver = false;
  }

  join(): string {
    return this.#pieces.join("\n");
  }
}

/** Matches a line with only the name of a speaker at the end of a text, with the special tokens of chat templates. */
const turnLabel =
  /(?<![^\n])[^\S\n]*(?:<\|(?:im_end|eot_id|end)\|>\s{0,9})?(?:<\|(?:im_start|start|start_header_id)\|>)?(?:human|user|assistant|ai|bot|agent|customer)(?:<\|end_header_id\|>)?:?\s*$/i;

function plainTag(found: string): string {
  const tag = found.toLowerCase();
  if (tag.endsWith("/think|>")) return "<|/think|>";
  return tag.replace("<//", "</").replace(/(?:\s[^<>]*|\/)>$/, ">");
}

const finalChannel = /<\|channel\|>final ?(?:<\|constrain\|> ?\w*)?<\|message\|>([^]*)$/;

/**
 * Removes all channels of a gpt-oss reply except the final one.
 *
 * **Source:** openai/harmony docs/format.md; sgl-project/sglang python/sglang/srt/parser (the
 * format without its special tokens).
 */
function removeChannels(text: string): string {
  if (text.includes("<|channel|>")) {
    const [, final = ""] = finalChannel.exec(text) ?? [];
    return final
      .split(/<\|(?:end|return|start|channel|call)\|>/, 1)
      .join("")
      .trim();
  }
  const bare = /^\s*(?:analysis[^]*?)?assistantfinal([^]*)$/.exec(text)?.[1];
  if (bare !== undefined) return bare.trim();
  // The reply was cut before its final channel. No English word matches this pattern.
  return /^\s*analysis\p{Lu}/u.test(text) ? "" : text;
}
