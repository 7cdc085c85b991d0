import { PatternError, type Edge, type PatternNode } from "./pattern-node.ts";
import type { StepBudget } from "./step-budget.ts";

type Instruction =
  | { readonly type: "take"; readonly accepts: (codePoint: number) => boolean }
  | { readonly type: "split"; first: number; second: number }
  | { readonly type: "jump"; target: number }
  | { readonly type: "edge"; readonly holds: Edge }
  | { readonly type: "look"; readonly program: Program; readonly isNegated: boolean }
  /** Records the position at which a capture begins or ends. */
  | { readonly type: "note"; readonly name: string; readonly isStart: boolean }
  | { readonly type: "match" };

/** A pattern as a list of instructions. */
interface Program {
  readonly instructions: readonly Instruction[];
  /** True if the program reads towards the start of the text, as in a lookbehind assertion. */
  readonly isBackward: boolean;
}

/** Maximum number of instructions of a pattern, with expanded repetitions and look-arounds. */
const maxInstructions = 10_000;

/** The number of instructions of a complete pattern so far. */
interface Size {
  count: number;
}

/**
 * Compiles a pattern to instructions.
 *
 * @throws PatternError if its repetitions make it too large.
 */
export function toProgram(node: PatternNode): Program {
  return draftProgram(node, { isBackward: false, size: { count: 0 } });
}

function draftProgram(node: PatternNode, of: Omit<Draft, "instructions">): Program {
  const draft: Draft = { ...of, instructions: [] };
  emit(node, draft);
  push(draft, { type: "match" });
  return draft;
}

interface Draft {
  readonly instructions: Instruction[];
  readonly isBackward: boolean;
  readonly size: Size;
}

function push({ instructions, size }: Draft, instruction: Instruction): void {
  size.count += 1;
  if (size.count > maxInstructions) {
    throw new PatternError(`its repetitions expand to more than ${maxInstructions} characters`);
  }
  instructions.push(instruction);
}

function emit(node: PatternNode, draft: Draft): void {
  const { isBackward, size } = draft;
  switch (node.type) {
    case "one":
      return push(draft, { type: "take", accepts: node.accepts });
    case "edge":
      return push(draft, { type: "edge", holds: node.holds });
    case "look": {
      const program = draftProgram(node.part, { isBackward: !node.isAhead, size });
      return push(draft, { type: "look", program, isNegated: node.isNegated });
    }
    case "sequence":
      for (const part of isBackward ? node.parts.toReversed() : node.parts) emit(part, draft);
      return;
    case "capture":
      push(draft, { type: "note", name: node.name, isStart: !isBackward });
      emit(node.part, draft);
      return push(draft, { type: "note", name: node.name, isStart: isBackward });
    case "choice":
      return emitChoice(node.branches, draft);
    case "repeat":
      return emitRepeat(node, draft);
  }
}

function emitChoice(branches: readonly PatternNode[], draft: Draft): void {
  const { instructions } = draft;
  const ends: { target: number }[] = [];
  for (const [index, branch] of branches.entries()) {
    if (index === branches.length - 1) {
      emit(branch, draft);
      break;
    }
    const split = { type: "split" as const, first: instructions.length + 1, second: 0 };
    push(draft, split);
    emit(branch, draft);
    const jump = { type: "jump" as const, target: 0 };
    push(draft, jump);
    ends.push(jump);
    split.second = instructions.length;
  }
  for (const end of ends) end.target = instructions.length;
}

function emitRepeat(node: PatternNode & { type: "repeat" }, draft: Draft): void {
  const { instructions } = draft;
  const { part, min, max, isLazy } = node;
  for (let count = 0; count < min; count++) emitCounted(part, draft);
  const splits: { first: number; second: number }[] = [];
  const leave = (): number => {
    const split = { type: "split" as const, first: 0, second: 0 };
    push(draft, split);
    splits.push(split);
    split.first = instructions.length;
    return instructions.length - 1;
  };
  if (max === Infinity) {
    const start = leave();
    emit(part, draft);
    push(draft, { type: "jump", target: start });
  } else {
    for (let count = min; count < max; count++) {
      leave();
      emitCounted(part, draft);
    }
  }
  for (const split of splits) {
    split.second = instructions.length;
    if (isLazy) [split.first, split.second] = [split.second, split.first];
  }
}

/**
 * Emits one copy of a repeated part. A part without instructions becomes a no-op, so that the limit
 * on instructions also bounds its copies.
 */
function emitCounted(part: PatternNode, draft: Draft): void {
  const before = draft.instructions.length;
  emit(part, draft);
  if (draft.instructions.length === before) push(draft, noop);
}

const noop: Instruction = { type: "edge", holds: () => true };

/** The captured positions of a path, latest first. */
interface Noted {
  readonly name: string;
  readonly isStart: boolean;
  readonly place: number;
  readonly before: Noted | undefined;
}

/** A match at a known start. */
interface ProgramMatch {
  readonly end: number;
  readonly noted: Noted | undefined;
}

/** The texts of the captures in a match. */
export function capturesOf(text: string, { noted }: ProgramMatch): ReadonlyMap<string, string> {
  const captures = new Map<string, string>();
  const ends = new Map<string, number>();
  for (let note = noted; note !== undefined; note = note.before) {
    const { name, isStart, place } = note;
    if (captures.has(name)) continue;
    const end = ends.get(name);
    if (!isStart) ends.set(name, end ?? place);
    else if (end !== undefined) captures.set(name, text.slice(place, end));
  }
  return captures;
}

/** A search in one text. A path that failed once is not tried again. */
export class PatternSearch {
  readonly #text: string;
  readonly #budget: StepBudget;
  /** The splits that were tried, by instruction and position, for each program. */
  readonly #tried = new Map<Program, Set<number>>();
  /** The result of each look-around at each position. */
  readonly #looked = new Map<Program, Map<number, boolean>>();

  constructor(text: string, budget: StepBudget) {
    this.#text = text;
    this.#budget = budget;
  }

  /** Returns the match at a position that a backtracking engine would find. */
  run(program: Program, start: number): ProgramMatch | undefined {
    const { instructions, isBackward } = program;
    const tried = this.#triedOf(program);
    const text = this.#text;
    const ways: number[] = [0, start];
    const notes: (Noted | undefined)[] = [undefined];
    while (ways.length > 0) {
      let noted = notes.pop();
      let place = ways.pop() as number;
      let counter = ways.pop() as number;
      for (;;) {
        this.#budget.spend();
        const instruction = instructions[counter] as Instruction;
        if (instruction.type === "match") {
          // The positions tried on a successful path did not fail.
          this.#tried.delete(program);
          return { end: place, noted };
        }
        if (instruction.type === "take") {
          const codePoint = isBackward ? codePointBefore(text, place) : text.codePointAt(place);
          if (codePoint === undefined || !instruction.accepts(codePoint)) break;
          const length = codePoint > 0xffff ? 2 : 1;
          place += isBackward ? -length : length;
          counter += 1;
        } else if (instruction.type === "split") {
          const key = counter * (text.length + 1) + place;
          if (tried.has(key)) break;
          tried.add(key);
          ways.push(instruction.second, place);
          notes.push(noted);
          counter = instruction.first;
        } else if (instruction.type === "jump") {
          counter = instruction.target;
        } else if (instruction.type === "note") {
          noted = { name: instruction.name, isStart: instruction.isStart, place, before: noted };
          counter += 1;
        } else {
          const holds =
            instruction.type === "edge"
              ? instruction.holds(text, place)
              : this.#looks(instruction.program, place) !== instruction.isNegated;
          if (!holds) break;
          counter += 1;
        }
      }
    }
    return undefined;
  }

  #looks(program: Program, place: number): boolean {
    let places = this.#looked.get(program);
    if (places === undefined) this.#looked.set(program, (places = new Map()));
    let result = places.get(place);
    if (result === undefined) places.set(place, (result = this.run(program, place) !== undefined));
    return result;
  }

  #triedOf(program: Program): Set<number> {
    let tried = this.#tried.get(program);
    if (tried === undefined) this.#tried.set(program, (tried = new Set()));
    return tried;
  }
}

function codePointBefore(text: string, place: number): number | undefined {
  if (place === 0) return undefined;
  const low = text.charCodeAt(place - 1);
  const isLow = low >= 0xdc00 && low < 0xe000 && place > 1;
  const pair = isLow ? text.codePointAt(place - 2) : undefined;
  return pair !== undefined && pair > 0xffff ? pair : low;
}
