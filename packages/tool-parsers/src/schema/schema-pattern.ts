import { compilePattern, type LinearPattern } from "../pattern/compile-pattern.ts";
import { PatternError } from "../pattern/pattern-node.ts";

/** Maximum number of compiled patterns in the cache. The oldest pattern is evicted first. */
const maxCompiled = 1_000;

const compiled = new Map<string, LinearPattern | PatternError>();

function compileOnce(source: string): LinearPattern | PatternError {
  const known = compiled.get(source);
  if (known !== undefined) return known;
  if (compiled.size >= maxCompiled) {
    for (const oldest of compiled.keys()) {
      compiled.delete(oldest);
      break;
    }
  }
  const result = tryCompile(source);
  compiled.set(source, result);
  return result;
}

function tryCompile(source: string): LinearPattern | PatternError {
  try {
    return compilePattern(source);
  } catch (error) {
    if (error instanceof PatternError) return error;
    throw error;
  }
}

/** The reason why a pattern of a schema is not checked; `undefined` if it is checked. */
export function unusablePattern(source: string): string | undefined {
  const result = compileOnce(source);
  return result instanceof PatternError ? result.message : undefined;
}

/** Returns a usable pattern of a schema. */
export function patternOf(source: string): LinearPattern {
  const result = compileOnce(source);
  if (result instanceof PatternError) throw result;
  return result;
}
