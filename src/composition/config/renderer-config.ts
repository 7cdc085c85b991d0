import { UsageError, describeError } from "../../errors.ts";
import type { ParserSettings } from "../../../packages/tool-parsers/src/choose-parser.ts";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import type { RendererOptions } from "../../renderer/create-renderer.ts";
import type { EngineName } from "./engine-config.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { requireSetting, text, type Setting, type SettingValues } from "./setting.ts";

/** The settings of the renderer and the parsers. */
export const rendererSettings = [
  {
    name: "model",
    kind: text,
    value: "dir",
    help: "model folder (tokenizer.json, chat template), or hf:OWNER/NAME[@REVISION]",
    operational: true,
  },
  {
    name: "parser",
    kind: text,
    value: "name",
    help: "tool-call parser (default: by the chat template)",
  },
  {
    name: "dialect",
    kind: { type: "choice", choices: ["sglang", "vllm"] },
    help: "engine whose tool-call parser is used (default: the run's engine)",
  },
  {
    name: "engine-version",
    kind: text,
    value: "release",
    help: "engine release whose parsers are used (default: 2026-08, for vllm 0.24)",
  },
  {
    name: "reasoning-parser",
    kind: text,
    value: "name",
    help: "reasoning parser, or none (default: by the chat template)",
  },
  {
    name: "stop-token",
    kind: { type: "list" },
    value: "token",
    help: "token that ends a turn, an id or a literal; repeatable (default: by the model folder)",
  },
  {
    name: "delta-base",
    kind: { type: "choice", choices: ["measured", "full"] },
    help: "history that is rendered to add observations: as little as the template needs, or all",
    default: "measured",
  },
  {
    name: "template-variable",
    kind: { type: "list" },
    value: "name=json",
    help: "variable for the chat template, such as enable_thinking=false",
  },
  {
    name: "transformers",
    kind: text,
    value: "release",
    help: "release of transformers to render as, such as 5.20 (default: 5.23)",
  },
  {
    name: "history",
    kind: { type: "choice", choices: ["keep", "split", "refuse"] },
    help: "how to treat templates that rewrite history",
    default: "keep",
  },
  {
    name: "guard",
    kind: { type: "choice", choices: ["neutralise", "special-only", "hf-parity", "reject"] },
    help: "how to treat control tokens in tool results and user lines",
    default: "neutralise",
  },
] as const satisfies readonly Setting[];

/** Settings that override the facts found about a chat template. */
export interface TemplateChoices {
  readonly parsers: ParserSettings;
  /**
   * Ids or literals of the tokens that end a turn. Absent: those of the model folder and the
   * template.
   */
  readonly stopTokens?: readonly (number | string)[];
  readonly deltaBase?: "full";
  /** The release of transformers to imitate. Absent: the newest known release. */
  readonly transformers?: string;
  readonly variables: PyDict;
  readonly historyPolicy: NonNullable<RendererOptions["historyPolicy"]>;
}

/** The configuration of the renderer. */
export interface RendererConfig extends TemplateChoices {
  readonly modelDir: string;
  readonly guardPolicy: NonNullable<RendererOptions["guardPolicy"]>;
}

/** The values of the renderer's settings. */
type RendererValues = SettingValues<(typeof rendererSettings)[number]>;

/**
 * Reads the configuration of the renderer.
 *
 * @throws UsageError if no model folder is named, or a variable cannot be read.
 */
export function readRendererConfig(values: RendererValues, engine: EngineName): RendererConfig {
  return {
    modelDir: requireSetting(values.model, "model", "the model's folder, with tokenizer.json"),
    guardPolicy: values.guard,
    ...readTemplateChoices(values, engine),
  };
}

/**
 * Reads the settings of the chat template. `engine` is the engine that samples, if any.
 *
 * @throws UsageError for a variable that cannot be read.
 */
export function readTemplateChoices(
  values: Omit<RendererValues, "model" | "guard">,
  engine?: EngineName,
): TemplateChoices {
  const stopTokens = values["stop-token"] ?? [];
  return {
    parsers: withoutUndefined({
      toolCallParser: values.parser,
      reasoningParser: values["reasoning-parser"],
      dialect: values.dialect,
      engineVersion: values["engine-version"],
      servedBy: engine === "vllm" ? ("vllm" as const) : undefined,
    }),
    variables: readVariables(values["template-variable"] ?? []),
    historyPolicy: values.history,
    ...(stopTokens.length !== 0 && { stopTokens: stopTokens.map(readStopToken) }),
    ...(values["delta-base"] === "full" && { deltaBase: "full" }),
    ...withoutUndefined({ transformers: values.transformers }),
  };
}

function readStopToken(token: string): number | string {
  return /^\d+$/.test(token) ? Number(token) : token;
}

function readVariables(entries: readonly string[]): PyDict {
  const variables = new Map<string, PyValue>();
  for (const entry of entries) {
    const split = entry.indexOf("=");
    if (split <= 0) {
      throw new UsageError(`Cannot read --template-variable ${entry}: expected name=value`);
    }
    const name = entry.slice(0, split);
    variables.set(name, readVariable(name, entry.slice(split + 1)));
  }
  return variables;
}

/**
 * JSON words by the words that people write for them. Such a word, for example `True`, would be a text, which is true
 * in a template.
 */
const words: ReadonlyMap<string, string> = new Map([
  ["true", "true"],
  ["false", "false"],
  ["null", "null"],
  ["none", "null"],
]);

/**
 * Parses a value as JSON, so that the command line needs no quotes. Returns the text if it is not
 * JSON.
 */
function readVariable(name: string, value: string): PyValue {
  try {
    return parsePythonJson(value);
  } catch (error) {
    const word = words.get(value.trim().toLowerCase());
    if (word !== undefined) {
      throw new UsageError(
        `Cannot read --template-variable ${name}=${value}: expected ${name}=${word}, ` +
          `or ${name}='"${value}"' for the text, which is true in a template`,
        { cause: error },
      );
    }
    if (/^\s*["[{]/.test(value)) {
      throw new UsageError(
        `Cannot read --template-variable ${name}=${value}: it starts like JSON, but is not JSON ` +
          `(${describeError(error)})`,
      );
    }
    return value;
  }
}
