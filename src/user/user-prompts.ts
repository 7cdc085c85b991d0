/** A simulator's system prompt, for tasks with and without an instruction. */
export interface InstructedPrompt {
  /** Contains the placeholder `{instruction}`. */
  readonly withInstruction: string;
  readonly withoutInstruction: string;
}

/** The prompts of model users. JSON-able. */
export interface UserPrompts {
  /** The system prompt of `llm`, `verify` and `reflection`. */
  readonly llm: InstructedPrompt;
  /** The system prompt of `react`, which requires a `Thought:` and a `User Response:`. */
  readonly react: InstructedPrompt;
  /**
   * The prompt of the judge of `verify` and `reflection`, with the placeholders `{transcript}` and
   * `{response}`. The answer must be true or false.
   */
  readonly verify: string;
  /**
   * The prompt of the judge of `reflection` for a rejected line, with the placeholders
   * `{transcript}` and `{response}`. The answer must end with `Response:` and a better line.
   */
  readonly reflect: string;
}

/** The agent's message before the user's first line. */
export const defaultGreeting = "Hi! How can I help you today?";

/** Replaces placeholders in one pass, so that braces in a value stay unchanged. */
export function fillPrompt(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{([a-z]+)\}/g, (place, name: string) =>
    Object.hasOwn(values, name) ? (values[name] as string) : place,
  );
}

/** Returns the system prompt for an instruction, or for `null`. */
export function fillInstruction(prompt: InstructedPrompt, instruction: string | null): string {
  if (instruction === null) return prompt.withoutInstruction;
  return fillPrompt(prompt.withInstruction, { instruction });
}
