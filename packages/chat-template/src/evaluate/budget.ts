import { TemplateError } from "../template-error.ts";

/** The limits of one rendering. A chat template comes from a model's author, so it is untrusted. */
export interface TemplateLimits {
  /**
   * Steps: a statement, a loop item, or 64 characters that a filter or method handles. Default 20 million, about a
   * second; published templates take about a hundred for a message.
   */
  readonly steps: number;
  /** Printed characters, in UTF-16 units. Default 100 million. */
  readonly characters: number;
  /** Nesting depth of macro calls and recursive loops. Default 200. */
  readonly depth: number;
}

/** The default limits of a rendering. */
export const defaultTemplateLimits: TemplateLimits = {
  steps: 20_000_000,
  characters: 100_000_000,
  depth: 200,
};

/**
 * The budget left to the current rendering. Renderings are synchronous and not nested, so one variable is enough;
 * outside of renderings no steps are counted.
 */
const left = { steps: Infinity, characters: Infinity, depth: Infinity };
let limits: TemplateLimits = { ...left };
/** The line of the loop that iterated last; 0 before the first. */
let lastLine = 0;

/** Runs a rendering within limits. */
export function runWithin<Result>(given: TemplateLimits, run: () => Result): Result {
  limits = given;
  lastLine = 0;
  leave(given.steps, given.characters, given.depth);
  try {
    return run();
  } finally {
    leave(Infinity, Infinity, Infinity);
  }
}

function leave(steps: number, characters: number, depth: number): void {
  left.steps = steps;
  left.characters = characters;
  left.depth = depth;
}

/**
 * Counts steps.
 *
 * @param line - The template's line, if known; the error names the last known one.
 * @throws TemplateError `LimitError` if the budget is used up.
 */
export function spend(steps: number, line?: number): void {
  left.steps -= steps;
  if (line !== undefined) lastLine = line;
  if (left.steps >= 0) return;
  const place = lastLine === 0 ? "" : `line ${lastLine}: `;
  throw limitError(`${place}the template takes more than ${limits.steps} steps`);
}

/** The number of steps left to the rendering. */
export function stepsLeft(): number {
  return left.steps;
}

/** Counts the steps of handling a complete text or list. @throws like `spend()`. */
export function spendOn(value: unknown): void {
  if (typeof value === "string" || Array.isArray(value)) spend(1 + Math.floor(value.length / 64));
  else spend(1);
}

/** Counts printed characters. @throws TemplateError `LimitError` above the limit. */
export function spendCharacters(count: number): void {
  left.characters -= count;
  if (left.characters >= 0) return;
  throw limitError(`the template prints more than ${limits.characters} characters`);
}

/** Runs one level deeper. @throws TemplateError `RecursionError`, as in Python, if it is too deep. */
export function nest<Result>(run: () => Result): Result {
  if (left.depth <= 0) {
    throw new TemplateError(
      "RecursionError",
      `maximum recursion depth exceeded: macros or recursive loops nest more than ${limits.depth} deep`,
    );
  }
  left.depth -= 1;
  try {
    return run();
  } finally {
    left.depth += 1;
  }
}

function limitError(message: string): TemplateError {
  return new TemplateError("LimitError", message);
}
