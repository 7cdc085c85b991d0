import { UsageError } from "../../../../python-values/src/support/index.ts";
import { PatternError, type PatternNode } from "../../pattern/pattern-node.ts";
import { readRegexPattern } from "../../pattern/read-pattern.ts";

/** A pattern of Python's package `regex`. */
interface RegexPattern {
  readonly node: PatternNode;
  /** True if the pattern can match the empty text. */
  readonly canBeEmpty: boolean;
  /** Names of all groups. */
  readonly names: readonly string[];
  /** Names of the groups that take part in every match. */
  readonly certainNames: readonly string[];
}

/**
 * Reads a pattern of Python's package `regex`, with DOTALL, if JavaScript can match exactly the
 * same.
 *
 * @throws UsageError naming the part that cannot be matched alike: flags, possessive repetitions,
 *   references to groups, groups that are captured more than once.
 */
export function readPythonRegex(pattern: string, place: string): RegexPattern {
  try {
    const node = readRegexPattern(pattern);
    const names = namesIn(node);
    checkRepetitions(node);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    if (twice !== undefined) throw refuse(`two groups of the name ${JSON.stringify(twice)}`);
    return { node, canBeEmpty: canBeEmpty(node), names, certainNames: certainNamesIn(node) };
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new UsageError(
      `Cannot translate the pattern ${JSON.stringify(pattern)} of ${place}: ${error.message}, ` +
        `expected literals, classes, groups, alternatives, look-around and plain repetitions`,
    );
  }
}

function refuse(what: string): PatternError {
  return new PatternError(`it holds ${what}`);
}

function partsOf(node: PatternNode): readonly PatternNode[] {
  switch (node.type) {
    case "sequence":
      return node.parts;
    case "choice":
      return node.branches;
    case "repeat":
    case "capture":
    case "look":
      return [node.part];
    case "one":
    case "edge":
      return [];
  }
}

function namesIn(node: PatternNode): string[] {
  const own = node.type === "capture" ? [node.name] : [];
  return [...own, ...partsOf(node).flatMap(namesIn)];
}

function certainNamesIn(node: PatternNode): string[] {
  if (node.type === "choice" || node.type === "repeat" || node.type === "look") return [];
  const own = node.type === "capture" ? [node.name] : [];
  return [...own, ...partsOf(node).flatMap(certainNamesIn)];
}

function canBeEmpty(node: PatternNode): boolean {
  switch (node.type) {
    case "one":
      return false;
    case "edge":
    case "look":
      return true;
    case "repeat":
      return node.min === 0 || canBeEmpty(node.part);
    case "choice":
      return node.branches.some(canBeEmpty);
    case "sequence":
    case "capture":
      return partsOf(node).every(canBeEmpty);
  }
}

/**
 * Refuses repetitions and look-around that JavaScript matches differently.
 *
 * @throws PatternError for such a part.
 */
function checkRepetitions(node: PatternNode): void {
  const hasGroup = partsOf(node).some((part) => namesIn(part).length > 0);
  if (node.type === "look" && hasGroup) throw refuse("a group that is captured in a look-around");
  if (node.type === "repeat") {
    const isOptional = node.min === 0 && node.max === 1;
    if (hasGroup && !isOptional) throw refuse("a group that is captured in a repetition");
    if (canBeEmpty(node.part) && (!isOptional || hasGroup)) {
      throw refuse("a repetition of what can be empty");
    }
  }
  partsOf(node).forEach(checkRepetitions);
}
