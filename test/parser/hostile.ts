/** A hostile text that a policy may sample, of any length. */
export interface HostileText {
  readonly name: string;
  /** At most `length` UTF-16 code units long, and not much shorter. */
  readonly build: (length: number) => string;
}

/** Texts that are repeated after every start of a call. */
const fillers: readonly string[] = [
  "a",
  " ",
  "\n",
  '"',
  "'",
  "\\",
  '\\"',
  "[",
  "{",
  "(",
  "]",
  "}",
  '{"a":',
  '{"a":1}',
  '{"name": "search", "arguments": {}}',
  "a=1, ",
  "f(a=",
  "f(a=1), ",
  "0",
  "-",
  ",",
  "<",
  "</",
  "&",
  "&amp;",
  "<think>",
  "</think>",
  "\ud83d",
  "é",
];

/** Complete texts that are, or once were, slow for one parser. */
const wholes: readonly (readonly [start: string, filler: string, end: string])[] = [
  ["[f(", "a=1, ", "x"],
  ["[", "f(a=1), ", "x"],
  ["[f(a=", "[", ""],
  ["[f(a=", "'", ""],
  ['[f(a="', "\\", '")]'],
  ["[f(a=", "-", "1)]"],
  ["[f(a=", "1+", "1)]"],
  ["[f(a=", "1_", ")]"],
  ["", '{"name": "search", "parameters": ', ""],
  ["", '{"name": "search", "parameters": {}};', ""],
];

/**
 * Texts that test a parser's time: each start of its call, with and without prose before it,
 * followed by one repeated text; its tags alone, complete and cut off; one giant call; thousands of
 * small ones.
 *
 * @param sampleOf one call of the format, with its argument.
 * @param markers literals of the format that may be absent from the call.
 */
export function hostileTexts(
  sampleOf: (query: string) => string,
  markers: readonly string[],
): HostileText[] {
  const sample = sampleOf("tea");
  const tags = [...new Set([...markers, ...tagsOf(sample)])];
  const nearMisses = tags.flatMap((tag) => (tag.length > 2 ? [tag.slice(0, -1)] : []));
  const units = [...new Set([...tags, ...nearMisses, ...fillers])];
  const starts = ["", ...beginningsOf(sample)];
  const repeated = starts.flatMap((start) =>
    units.flatMap((unit) => [
      repeatedText(start, unit, ""),
      repeatedText(start, unit, sample.slice(start.length)),
    ]),
  );
  return [
    ...repeated,
    ...wholes.map((parts) => repeatedText(...parts)),
    ...units.map((unit): HostileText => ({
      name: `one call of ${JSON.stringify(unit)}`,
      build: (length) => sampleOf(fill(unit, length - sample.length)),
    })),
    repeatedText("", sample, ""),
    repeatedText("", `${sample}\n`, ""),
    repeatedText("", sample.slice(0, -1), ""),
    repeatedText("", sample.slice(1), ""),
  ];
}

function repeatedText(start: string, unit: string, end: string): HostileText {
  return {
    name: [start, `${JSON.stringify(unit)}…`, end].filter((part) => part !== "").join(" "),
    build: (length) => start + fill(unit, length - start.length - end.length) + end,
  };
}

function fill(unit: string, length: number): string {
  return unit.repeat(Math.max(0, Math.floor(length / unit.length)));
}

/** The tags of a call, and the text between them. */
function tagsOf(sample: string): string[] {
  return sample
    .split(/(\]<\]minimax\[>\[<[^>]*>|\[TOOL_CALLS\]|<[^<>]*>|```json|```)/)
    .filter(Boolean);
}

/** The call up to the end of each of its tags, up to its argument, and into it. */
function beginningsOf(sample: string): string[] {
  const beginnings: string[] = [];
  let start = "";
  for (const tag of tagsOf(sample)) {
    start += tag;
    beginnings.push(start);
  }
  const argument = sample.indexOf("tea");
  return [...new Set([...beginnings, sample.slice(0, argument), sample.slice(0, argument + 1)])];
}

/**
 * Texts that test a reasoning parser's time: repeated literals of this and other parsers, at the
 * start, inside the reasoning and after it.
 */
export function hostileReasoning(parser: {
  readonly markers: readonly string[];
  readonly closer?: string;
}): HostileText[] {
  const { markers, closer = "</think>" } = parser;
  const tags = [...markers, closer, ...reasoningTags];
  const nearMisses = tags.map((tag) => tag.slice(0, -1));
  const units = [...new Set([...tags, ...nearMisses, ...fillers])];
  const open = markers[0] ?? "";
  return ["", "a", open, `${open}a${closer}`].flatMap((start) =>
    units.flatMap((unit) => [
      repeatedText(start, unit, ""),
      repeatedText(start, unit, `${open}a${closer}`),
    ]),
  );
}

/** Tags with a meaning for some reasoning parser. */
const reasoningTags: readonly string[] = [
  "<tool_call>",
  "<|channel|>analysis<|message|>",
  "<|start|>assistant",
  "<|end|>",
  "<|open|>tools<|sep|>",
  "<|tools_prefix|>[",
  "]<|tools_suffix|>",
  "<|START_TEXT|>",
  "<|message_model|>",
  "<|eot|>",
  " to=f<|message|>",
];
