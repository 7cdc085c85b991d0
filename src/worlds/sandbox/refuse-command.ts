import type { SandboxCommandOptions, SandboxResult } from "./sandbox.ts";

/**
 * Returns a result for a command that no system can start: exit code 126, with the reason in
 * `stderr` for the model, as a shell would answer. Returns `undefined` for other commands. Also
 * checks that all values are texts, because a model's arguments may lack a member.
 */
export function refuseCommand(
  command: readonly string[],
  { cwd, env = {}, stdin }: Pick<SandboxCommandOptions, "cwd" | "env" | "stdin">,
): SandboxResult | undefined {
  const given: unknown = command;
  if (!Array.isArray(given)) return cannotStart(126, `it is ${typeof given}, not a list of texts`);
  if (typeof env !== "object" || env === null) {
    return cannotStart(126, "its variables are not an object");
  }
  if (command.length === 0 || command[0] === "") return cannotStart(127, "no program is named");
  const texts = [
    ...command.map((text, index) => [index === 0 ? "the program" : `argument ${index}`, text]),
    ...(cwd === undefined ? [] : [["the folder", cwd]]),
    ...Object.entries(env).flatMap(([name, value]) => [
      [`the name of variable ${JSON.stringify(name)}`, name],
      [`the variable ${JSON.stringify(name)}`, value],
    ]),
  ] as const;
  for (const [what, text] of texts) {
    const fault = faultOf(text);
    if (fault !== undefined) return cannotStart(126, `${what} ${fault}`);
  }
  for (const name of Object.keys(env)) {
    if (name === "" || name.includes("=")) {
      return cannotStart(126, `${JSON.stringify(name)} cannot name a variable`);
    }
  }
  if (stdin !== undefined && stdin !== null && typeof stdin !== "string") {
    return cannotStart(126, `the standard input is ${typeof stdin}, not text`);
  }
  const half = typeof stdin === "string" ? halfCharacterIn(stdin) : undefined;
  return half === undefined ? undefined : cannotStart(126, `the standard input ${half}`);
}

/** Returns the result of a command that cannot be started, with a shell's exit code. */
export function cannotStart(exitCode: 126 | 127, reason: string): SandboxResult {
  const stderr = `cannot run the command: ${reason}`;
  return { end: "exited", exitCode, stdout: "", stderr, omittedBytes: 0 };
}

/** The message for arguments that are too long for the system. */
export const argumentsTooLong =
  "its arguments and variables are too long, expected large contents in its standard input or in a file";

function faultOf(text: unknown): string | undefined {
  if (typeof text !== "string") return `is ${typeof text}, not text`;
  const nul = text.indexOf("\0");
  if (nul !== -1) {
    return `has a NUL character at position ${nul}, which only standard input and files can hold`;
  }
  return halfCharacterIn(text);
}

/** Describes a lone surrogate in the text, which UTF-8 cannot represent. `undefined` if there is none. */
function halfCharacterIn(text: string): string | undefined {
  const found = /\p{Surrogate}/u.exec(text);
  if (found === null) return undefined;
  const code = found[0].charCodeAt(0).toString(16).toUpperCase();
  return `has half a character (U+${code}) at position ${found.index}, which UTF-8 cannot represent`;
}
