/**
 * A pattern over code points, with the meaning that Perl and Python give it: alternatives and
 * repetitions prefer their first way. Greedy only, without captures or look-around.
 */
export type Pattern =
  | { readonly type: "one"; readonly accepts: (codePoint: number) => boolean }
  | { readonly type: "sequence"; readonly parts: readonly Pattern[] }
  /** Zero or more times; the inside must not match the empty text. */
  | { readonly type: "repeat"; readonly part: Pattern }
  | { readonly type: "optional"; readonly part: Pattern };

/** The inside, one after another. */
export function sequence(...parts: readonly (Pattern | string)[]): Pattern {
  return {
    type: "sequence",
    parts: parts.flatMap((part) =>
      typeof part === "string" ? [...part].map((character) => literal(character)) : [part],
    ),
  };
}

function literal(character: string): Pattern {
  const wanted = character.codePointAt(0);
  return { type: "one", accepts: (codePoint) => codePoint === wanted };
}

/** Zero or more times. */
export function repeat(part: Pattern): Pattern {
  return { type: "repeat", part };
}

/** Once or more often. */
export function repeatOnce(part: Pattern): Pattern {
  return sequence(part, repeat(part));
}

/** Once or not at all. */
export function optional(part: Pattern): Pattern {
  return { type: "optional", part };
}

type Instruction =
  | { readonly type: "take"; readonly accepts: (codePoint: number) => boolean }
  /** `slot` is the ordinal of the split in the program. */
  | {
      readonly type: "split";
      readonly slot: number;
      readonly first: number;
      readonly second: number;
    }
  /** Takes as many code points as there are, and remembers each place where it could stop. */
  | {
      readonly type: "loop";
      readonly slot: number;
      readonly accepts: (codePoint: number) => boolean;
    }
  | { readonly type: "jump"; readonly target: number }
  | { readonly type: "match" };

/** Finds the match that a backtracking engine would find first, but in linear time. */
export interface LinearMatcher {
  /** The leftmost match, `undefined` where there is none. */
  search(text: string, first: string): readonly [start: number, end: number] | undefined;
  /** Whether the text begins with a match. */
  matchesAtStart(text: string): boolean;
}

/**
 * Compiles a pattern into a matcher that visits each place of the text at most once for each choice of
 * the pattern: a way that failed once fails whenever it is tried again, whatever led there.
 */
export function compileLinear(pattern: Pattern): LinearMatcher {
  const program: Instruction[] = [];
  emit(pattern, program);
  program.push({ type: "match" });
  const splitCount = countSplits(program);
  const createVisited = (text: string): Uint8Array =>
    new Uint8Array(Math.ceil((splitCount * (text.length + 1)) / 8));
  return {
    matchesAtStart: (text) =>
      run(program, { text, visited: createVisited(text), start: 0 }) !== undefined,
    search(text, first) {
      const visited = createVisited(text);
      for (let start = text.indexOf(first); start !== -1; start = text.indexOf(first, start + 1)) {
        const end = run(program, { text, visited, start });
        if (end !== undefined) return [start, end];
      }
      return undefined;
    },
  };
}

function emit(pattern: Pattern, program: Instruction[]): void {
  switch (pattern.type) {
    case "one":
      program.push({ type: "take", accepts: pattern.accepts });
      return;
    case "sequence":
      for (const part of pattern.parts) emit(part, program);
      return;
    case "optional":
    case "repeat": {
      if (pattern.type === "repeat" && pattern.part.type === "one") {
        const slot = countSplits(program);
        program.push({ type: "loop", slot, accepts: pattern.part.accepts });
        return;
      }
      const split = program.length;
      program.push({ type: "match" });
      emit(pattern.part, program);
      if (pattern.type === "repeat") program.push({ type: "jump", target: split });
      // Its own place holds no split yet.
      const slot = countSplits(program);
      program[split] = { type: "split", slot, first: split + 1, second: program.length };
    }
  }
}

function countSplits(program: readonly Instruction[]): number {
  return program.filter(({ type }) => type === "split" || type === "loop").length;
}

function run(
  program: readonly Instruction[],
  facts: { readonly text: string; readonly visited: Uint8Array; readonly start: number },
): number | undefined {
  const { text, visited } = facts;
  const width = text.length + 1;
  /** Ways that are still to be tried: instruction and place, the next one last. */
  const ways: number[] = [0, facts.start];
  while (ways.length > 0) {
    let place = ways.pop() as number;
    let counter = ways.pop() as number;
    for (;;) {
      const instruction = program[counter] as Instruction;
      if (instruction.type === "take") {
        const codePoint = text.codePointAt(place);
        if (codePoint === undefined || !instruction.accepts(codePoint)) break;
        place += codePoint > 0xffff ? 2 : 1;
        counter += 1;
      } else if (instruction.type === "jump") {
        counter = instruction.target;
      } else if (instruction.type === "match") {
        return place;
      } else {
        const bit = instruction.slot * width + place;
        const byte = visited[bit >>> 3] as number;
        const mask = 1 << (bit & 7);
        if ((byte & mask) !== 0) break;
        visited[bit >>> 3] = byte | mask;
        const second = instruction.type === "loop" ? counter + 1 : instruction.second;
        const codePoint = text.codePointAt(place);
        if (instruction.type === "loop") {
          if (codePoint === undefined || !instruction.accepts(codePoint)) {
            counter = second;
            continue;
          }
        } else {
          counter = instruction.first;
        }
        // A way that its first step would end is not worth remembering.
        const next = program[second] as Instruction;
        if (next.type !== "take" || (codePoint !== undefined && next.accepts(codePoint))) {
          ways.push(second, place);
        }
        if (instruction.type === "loop") place += (codePoint as number) > 0xffff ? 2 : 1;
      }
    }
  }
  return undefined;
}
