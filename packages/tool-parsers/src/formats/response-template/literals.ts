const escapes: Readonly<Partial<Record<string, string>>> = { n: "\n", r: "\r", t: "\t" };

/** Maximum number of texts that a pattern may stand for. */
const MAX_LITERALS = 16;

/**
 * The texts that a pattern of literals, alternatives and optional parts stands for; `undefined` for
 * any other pattern.
 *
 * **Source:** sgl-project/sglang 0.5.23,
 * `python/sglang/srt/function_call/response_template_structural_tag.py`.
 */
export function expandLiterals(pattern: string): readonly string[] | undefined {
  const found = readAlternatives(pattern, 0);
  return found?.index === pattern.length ? found.literals : undefined;
}

interface Expansion {
  readonly literals: readonly string[];
  readonly index: number;
}

function readAlternatives(pattern: string, start: number): Expansion | undefined {
  const literals = new Set<string>();
  let index = start - 1;
  do {
    const branch = readSequence(pattern, index + 1);
    if (branch === undefined) return undefined;
    for (const literal of branch.literals) literals.add(literal);
    ({ index } = branch);
  } while (pattern[index] === "|");
  return literals.size > MAX_LITERALS ? undefined : { literals: [...literals], index };
}

function readSequence(pattern: string, start: number): Expansion | undefined {
  let literals: readonly string[] = [""];
  let index = start;
  while (index < pattern.length && pattern[index] !== "|" && pattern[index] !== ")") {
    const part = readPart(pattern, index);
    if (part === undefined) return undefined;
    const isOptional = pattern[part.index] === "?";
    const choices = isOptional ? ["", ...part.literals] : part.literals;
    index = part.index + (isOptional ? 1 : 0);
    literals = literals.flatMap((before) => choices.map((choice) => before + choice));
    if (literals.length > MAX_LITERALS) return undefined;
  }
  return { literals, index };
}

function readPart(pattern: string, index: number): Expansion | undefined {
  if (pattern.startsWith("(?:", index)) {
    const inner = readAlternatives(pattern, index + 3);
    if (inner === undefined || pattern[inner.index] !== ")") return undefined;
    return { ...inner, index: inner.index + 1 };
  }
  const character = String.fromCodePoint(pattern.codePointAt(index) ?? 0);
  if (character === "\\") {
    const escaped = pattern.slice(index + 1, index + 2);
    const literal = escapes[escaped] ?? escaped;
    const isClass = /[\p{Alphabetic}\p{N}]/u.test(escaped) && escapes[escaped] === undefined;
    return escaped === "" || isClass ? undefined : { literals: [literal], index: index + 2 };
  }
  if (/[.^$*+?{}[\]\\|()]/.test(character)) return undefined;
  return { literals: [character], index: index + character.length };
}
