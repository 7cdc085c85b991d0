import { TemplateError } from "../template-error.ts";

/** How much one rendering may take: a chat template comes with a model, from whoever made that. */
export interface TemplateLimits {
  /**
   * Steps: a statement, an item that is gone through, 64 characters that a filter or method handles.
   * Default 20 million, a second or so; published templates take about a hundred for a message.
   */
  readonly steps: number;
  /** Characters that are printed, in UTF-16 units. Default 100 million. */
  readonly characters: number;
  /** Macros and recursive loops within one another. Default 200. */
  readonly depth: number;
}

/** The limits of a rendering where none are given. */
export const defaultTemplateLimits: TemplateLimits = {
  steps: 20_000_000,
  characters: 100_000_000,
  depth: 200,
};

/**
 * What is left to the rendering that runs now. Renderings are synchronous and never within one
 * another, so that there is one at a time; outside of them nothing is counted.
 */
const left = { steps: Infinity, characters: Infinity, depth: Infinity };
let limits: TemplateLimits = { ...left };
/** The line of the loop that went on last; 0 before there is one. */
let lastLine = 0;

/** Renders within limits. */
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
 * @param line the template's line, where it is known; the error names the last one that was.
 * @throws TemplateError `LimitError` where no more are left.
 */
export function spend(steps: number, line?: number): void {
  left.steps -= steps;
  if (line !== undefined) lastLine = line;
  if (left.steps >= 0) return;
  const place = lastLine === 0 ? "" : `line ${lastLine}: `;
  throw limitError(`${place}the template takes more than ${limits.steps} steps`);
}

/** How many steps the rendering may still take. */
export function stepsLeft(): number {
  return left.steps;
}

/** Counts the steps of handling a text or list as a whole. @throws as `spend()`. */
export function spendOn(value: unknown): void {
  if (typeof value === "string" || Array.isArray(value)) spend(1 + Math.floor(value.length / 64));
  else spend(1);
}

/** Counts what is printed. @throws TemplateError `LimitError` where it is too much. */
export function spendCharacters(count: number): void {
  left.characters -= count;
  if (left.characters >= 0) return;
  throw limitError(`the template prints more than ${limits.characters} characters`);
}

/** Goes one level deeper. @throws TemplateError `RecursionError`, as in Python, where it is too deep. */
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
