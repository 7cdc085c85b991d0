import { UsageError } from "../errors.ts";
import type { InstructedPrompt, UserPrompts } from "./user-prompts.ts";

/**
 * Extracts the prompts from the Python source of τ-bench's user simulators. It reads the source by
 * the names of classes and functions and never runs it.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/user.py.
 *
 * @throws UsageError that names the class or function whose prompt is not in the expected form.
 */
export function userPromptsFromPython(source: string, file: string): UserPrompts {
  const place = (name: string): { source: string; place: string } => ({
    source: definition(source, name, file),
    place: `${file}: ${name}`,
  });
  return {
    llm: systemPrompt(place("class LLMUserSimulationEnv")),
    react: systemPrompt(place("class ReactUserSimulationEnv")),
    verify: formatString(place("def verify"), ["transcript", "response"]),
    reflect: formatString(place("def reflect"), ["transcript", "response"]),
  };
}

interface Definition {
  readonly source: string;
  readonly place: string;
}

/** Returns the source of a top-level definition. */
function definition(source: string, name: string, file: string): string {
  const start = new RegExp(`^${name}\\b`, "m").exec(source)?.index;
  if (start === undefined) throw new UsageError(`Cannot read ${file}: expected "${name}" in it`);
  const length = source.slice(start + 1).search(/^(?:class|def|@)/m);
  return length < 0 ? source.slice(start) : source.slice(start, start + 1 + length);
}

/**
 * Reads a system prompt. Its `instruction_display` joins two texts around the instruction, or is
 * empty.
 */
function systemPrompt({ source, place }: Definition): InstructedPrompt {
  const around = /\(\s*("(?:[^"\\\n]|\\.)*")\s*\+\s*instruction\s*\+\s*("(?:[^"\\\n]|\\.)*")\s*\)/;
  const [, before, after] = around.exec(source) ?? [];
  if (before === undefined || after === undefined) {
    throw new UsageError(`Cannot read ${place}: expected ("…" + instruction + "…") in it`);
  }
  const template = formatString({ source, place }, ["instruction_display"]);
  const [head, tail] = template.split("{instruction_display}") as [string, string];
  const middle = `${JSON.parse(before)}{instruction}${JSON.parse(after)}`;
  return { withInstruction: head + middle + tail, withoutInstruction: head + tail };
}

/**
 * Returns the only triple-quoted f-string. It must have each of the given placeholders once and no
 * others.
 */
function formatString({ source, place }: Definition, names: readonly string[]): string {
  const [text, more] = Array.from(source.matchAll(/\bf"""([^]*?)"""/g), (match) => match[1] ?? "");
  if (text === undefined || more !== undefined) {
    throw new UsageError(`Cannot read ${place}: expected one f"""…""" in it`);
  }
  const places = Array.from(text.matchAll(/\{([^{}]*)\}/g), (match) => match[1] ?? "");
  const isPlain = !text.includes("\\") && places.toSorted().join() === names.toSorted().join();
  if (isPlain) return text;
  throw new UsageError(
    `Cannot read ${place}: its f-string has ${places.map((name) => `{${name}}`).join(", ")}, ` +
      `expected ${names.map((name) => `{${name}}`).join(", ")} and no backslash`,
  );
}
