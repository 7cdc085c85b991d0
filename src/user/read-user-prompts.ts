import { isObject } from "../values/is-object.ts";
import { UsageError, describeError } from "../errors.ts";
import { ownUserPrompts } from "./own-user-prompts.ts";
import type { InstructedPrompt, UserPrompts } from "./user-prompts.ts";
import { userPromptsFromPython } from "./user-prompts-from-python.ts";
import { readTextFile } from "../text/decode-text.ts";
import { parseStrictJson } from "../json/strict-json.ts";

/**
 * Reads the prompts of τ-bench's user simulators. The file is a bundle's
 * `user-simulator-prompts.json` or the benchmark's `tau_bench/envs/user.py`.
 *
 * The JSON file is `{"llm": {"none": …, "with": …}, "react": {…}}`, where `with` has the
 * placeholder `DO THIS` for the instruction. It may have `verify` and `reflect`, texts with
 * `{transcript}` and `{response}`. Missing judge prompts default to `ownUserPrompts`.
 *
 * @throws UsageError that names the file and the member if a prompt cannot be used.
 */
export async function readUserPrompts(file: string): Promise<UserPrompts> {
  const text = await readText(file);
  if (file.endsWith(".py")) return userPromptsFromPython(text, file);
  const prompts = asRecord(parseJson(text, file), file);
  return {
    llm: instructedPrompt(prompts["llm"], `${file}: llm`),
    react: instructedPrompt(prompts["react"], `${file}: react`),
    verify: judgePrompt(prompts["verify"], `${file}: verify`) ?? ownUserPrompts.verify,
    reflect: judgePrompt(prompts["reflect"], `${file}: reflect`) ?? ownUserPrompts.reflect,
  };
}

async function readText(file: string): Promise<string> {
  try {
    return await readTextFile(file, { mark: "drop" });
  } catch (error) {
    throw new UsageError(`Cannot read the user prompts ${file}: ${describeError(error)}`, {
      cause: error,
    });
  }
}

function parseJson(text: string, file: string): unknown {
  try {
    return parseStrictJson(text);
  } catch (error) {
    throw new UsageError(`Cannot read the user prompts ${file}: ${describeError(error)}`, {
      cause: error,
    });
  }
}

/** The bundle's placeholder for the instruction. */
const instructionPlace = "DO THIS";

function instructedPrompt(value: unknown, place: string): InstructedPrompt {
  const prompt = asRecord(value, place);
  const withInstruction = asText(prompt["with"], `${place}.with`).split(instructionPlace);
  if (withInstruction.length !== 2) {
    throw new UsageError(
      `Cannot read ${place}.with: ${instructionPlace} occurs ${withInstruction.length - 1} times, ` +
        "expected once, as the placeholder of the instruction",
    );
  }
  return {
    withInstruction: withInstruction.join("{instruction}"),
    withoutInstruction: asText(prompt["none"], `${place}.none`),
  };
}

function judgePrompt(value: unknown, place: string): string | undefined {
  if (value === undefined) return undefined;
  const text = asText(value, place);
  for (const name of ["{transcript}", "{response}"]) {
    if (!text.includes(name)) throw new UsageError(`Cannot read ${place}: expected ${name} in it`);
  }
  return text;
}

function asRecord(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (isObject(value)) return value;
  throw new UsageError(`Cannot read ${place}: expected an object`);
}

function asText(value: unknown, place: string): string {
  if (typeof value === "string" && value !== "") return value;
  throw new UsageError(`Cannot read ${place}: expected text`);
}
