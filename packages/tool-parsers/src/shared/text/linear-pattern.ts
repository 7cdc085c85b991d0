/**
 * A pattern over code points, with the semantics of Perl and Python: alternatives and repetitions
 * prefer their first option. All repetitions are greedy, and there are no captures and no
 * look-around.
 */
export type Pattern =
  | { readonly type: "one"; readonly accepts: (codePoint: number) => boolean }
  /** Matches any code point. */
  | { readonly type: "any" }
  | { readonly type: "sequence"; readonly parts: readonly Pattern[] }
  /** Zero or more times; the inside must not match the empty text. */
  | { readonly type: "repeat"; readonly part: Pattern }
  | { readonly type: "optional"; readonly part: Pattern };

/** Matches the parts one after another. */
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

/** Matches the part zero or more times. */
export function repeat(part: Pattern): Pattern {
  return { type: "repeat", part };
}

/** Matches the part once or more often. */
export function repeatOnce(part: Pattern): Pattern {
  return sequence(part, repeat(part));
}

/** Matches the part once or not at all. */
export function optional(part: Pattern): Pattern {
  return { type: "optional", part };
}

type Instruction =
  | { readonly type: "take"; readonly accepts: (codePoint: number) => boolean }
  /**
   * Tries the instruction at `first`, then the one at `second`. `slot` numbers the splits and loops of a
   * program. A search marks for each of them the places that it has tried.
   */
  | {
      readonly type: "split";
      readonly slot: number;
      readonly first: number;
      readonly second: number;
    }
  /** Takes the most code points that match, and records each place at which it may stop. */
  | {
      readonly type: "loop";
      readonly slot: number;
      readonly accepts: (codePoint: number) => boolean;
    }
  /** Repeats like `loop`, for any code point. `slot` numbers the leaps of a program. */
  | { readonly type: "leap"; readonly slot: number }
  | { readonly type: "jump"; readonly target: number }
  | { readonly type: "match" };

/** A program, and for each instruction the ASCII characters that a path from it can take first. */
interface Program {
  readonly instructions: readonly Instruction[];
  readonly beginnings: readonly Uint8Array[];
  readonly splitCount: number;
  readonly leapCount: number;
}

/** The text of a search, and the states that were tried. */
interface Search {
  readonly text: string;
  /** A bit for each place at each split or loop: 1 if it was tried. */
  readonly visited: Uint8Array;
  /** The place from which each leap has tried all later places. Infinity before its first one. */
  readonly leaptFrom: number[];
}

/** Finds the match that a backtracking engine would find first, in linear time. */
interface LinearMatcher {
  /** The leftmost match; `undefined` if the text has none. */
  search(text: string, first: string): readonly [start: number, end: number] | undefined;
  /** True if the text begins with a match. */
  matchesAtStart(text: string): boolean;
}

/**
 * Makes a matcher that visits each place of the text at most once for each choice of the pattern. A
 * path that failed once fails again, independent of the path to it. The pattern is compiled on
 * first use.
 */
export function compileLinear(pattern: Pattern): LinearMatcher {
  let compiled: Program | undefined;
  const program = (): Program => (compiled ??= toProgram(pattern));
  return {
    matchesAtStart: (text) => run(program(), startSearch(program(), text), 0) !== undefined,
    search(text, first) {
      const search = startSearch(program(), text);
      for (let start = text.indexOf(first); start !== -1; start = text.indexOf(first, start + 1)) {
        const end = run(program(), search, start);
        if (end !== undefined) return [start, end];
      }
      return undefined;
    },
  };
}

function toProgram(pattern: Pattern): Program {
  const instructions: Instruction[] = [];
  emit(pattern, instructions);
  instructions.push({ type: "match" });
  return {
    instructions,
    beginnings: instructions.map((_, counter) => findBeginnings(instructions, counter)),
    splitCount: countOf(instructions, ["split", "loop"]),
    leapCount: countOf(instructions, ["leap"]),
  };
}

function startSearch({ splitCount, leapCount }: Program, text: string): Search {
  return {
    text,
    visited: new Uint8Array(Math.ceil((splitCount * (text.length + 1)) / 8)),
    leaptFrom: Array.from({ length: leapCount }, () => Infinity),
  };
}

/** 1 for each ASCII character that a path from the instruction can take first. */
function findBeginnings(instructions: readonly Instruction[], counter: number): Uint8Array {
  return Uint8Array.from({ length: 128 }, (_, codePoint) =>
    canBegin(instructions, counter, codePoint) ? 1 : 0,
  );
}

/** True if a path from the instruction can take the code point first, or needs no character. */
function canBegin(
  instructions: readonly Instruction[],
  counter: number,
  codePoint: number | undefined,
): boolean {
  const instruction = instructions[counter] as Instruction;
  switch (instruction.type) {
    case "take":
      return codePoint !== undefined && instruction.accepts(codePoint);
    case "loop":
      if (codePoint !== undefined && instruction.accepts(codePoint)) return true;
      return canBegin(instructions, counter + 1, codePoint);
    case "split":
      return (
        canBegin(instructions, instruction.first, codePoint) ||
        canBegin(instructions, instruction.second, codePoint)
      );
    case "jump":
      return canBegin(instructions, instruction.target, codePoint);
    case "leap":
    case "match":
      return true;
  }
}

function emit(pattern: Pattern, program: Instruction[]): void {
  switch (pattern.type) {
    case "one":
      program.push({ type: "take", accepts: pattern.accepts });
      return;
    case "any":
      program.push({ type: "take", accepts: () => true });
      return;
    case "sequence":
      for (const part of pattern.parts) emit(part, program);
      return;
    case "optional":
    case "repeat": {
      if (pattern.type === "repeat" && pattern.part.type === "any") {
        program.push({ type: "leap", slot: countOf(program, ["leap"]) });
        return;
      }
      if (pattern.type === "repeat" && pattern.part.type === "one") {
        const slot = countOf(program, ["split", "loop"]);
        program.push({ type: "loop", slot, accepts: pattern.part.accepts });
        return;
      }
      const split = program.length;
      program.push({ type: "match" });
      emit(pattern.part, program);
      if (pattern.type === "repeat") program.push({ type: "jump", target: split });
      // The instruction at its own place is not a split yet.
      const slot = countOf(program, ["split", "loop"]);
      program[split] = { type: "split", slot, first: split + 1, second: program.length };
    }
  }
}

function countOf(program: readonly Instruction[], types: readonly Instruction["type"][]): number {
  return program.filter(({ type }) => types.includes(type)).length;
}

function run(program: Program, search: Search, start: number): number | undefined {
  const { instructions, beginnings } = program;
  const { text, visited } = search;
  const width = text.length + 1;
  /** The paths that are still to be tried: pairs of instruction and place, the next pair last. */
  const ways: number[] = [0, start];
  while (ways.length > 0) {
    let place = ways.pop() as number;
    let counter = ways.pop() as number;
    for (;;) {
      const instruction = instructions[counter] as Instruction;
      if (instruction.type === "take") {
        const codePoint = text.codePointAt(place);
        if (codePoint === undefined || !instruction.accepts(codePoint)) break;
        place += codePoint > 0xffff ? 2 : 1;
        counter += 1;
      } else if (instruction.type === "jump") {
        counter = instruction.target;
      } else if (instruction.type === "match") {
        return place;
      } else if (instruction.type === "leap") {
        leap(program, search, { counter, slot: instruction.slot, place, ways });
        break;
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
        // A path whose first step fails is not recorded.
        if (begins(instructions, beginnings, second, codePoint)) ways.push(second, place);
        if (instruction.type === "loop") place += (codePoint as number) > 0xffff ? 2 : 1;
      }
    }
  }
  return undefined;
}

/** `canBegin()`, from the table for ASCII characters. */
function begins(
  instructions: readonly Instruction[],
  beginnings: readonly Uint8Array[],
  counter: number,
  codePoint: number | undefined,
): boolean {
  return codePoint !== undefined && codePoint < 128
    ? (beginnings[counter] as Uint8Array)[codePoint] === 1
    : canBegin(instructions, counter, codePoint);
}

/** Records each place where any number of code points can stop, the last place on top. */
function leap(
  { instructions, beginnings }: Program,
  { text, leaptFrom }: Search,
  way: {
    readonly counter: number;
    readonly slot: number;
    readonly place: number;
    readonly ways: number[];
  },
): void {
  const { slot, ways } = way;
  const next = way.counter + 1;
  // An earlier leap has tried all places after its own.
  const end = Math.min(leaptFrom[slot] as number, text.length + 1);
  for (let place = way.place; place < end; place++) {
    const codePoint = text.codePointAt(place);
    if (begins(instructions, beginnings, next, codePoint)) ways.push(next, place);
    if (codePoint !== undefined && codePoint > 0xffff) place += 1;
  }
  leaptFrom[slot] = Math.min(end, way.place);
}
