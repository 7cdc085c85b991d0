import type { ChatPrices } from "../../user/chat/chat-budget.ts";
import type { ChatModelConfig } from "../../user/chat/chat-model-config.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { count, price, requireSetting, text, type Setting, type SettingValues } from "./setting.ts";

/** The settings of the user. */
export const userSettings = [
  {
    name: "user",
    kind: {
      type: "choice",
      choices: ["scripted", "llm", "react", "verify", "reflection", "human"],
    },
    help: "user to talk to (default: scripted, if the environment has a user)",
  },
  {
    name: "user-url",
    kind: text,
    value: "url",
    help: "OpenAI-compatible endpoint of the user model",
    operational: true,
  },
  { name: "user-model", kind: text, value: "name", help: "name of the user model" },
  {
    name: "user-api-key-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the user model's API key",
    operational: true,
  },
  {
    name: "user-temperature",
    kind: { type: "number", min: 0, max: 100 },
    value: "t",
    help: "temperature of the user model (default: the endpoint's)",
  },
  {
    name: "user-concurrency",
    kind: count(1),
    value: "n",
    help: "requests to the user model at once",
    default: 32,
    operational: true,
  },
  {
    name: "user-input-price",
    kind: price,
    value: "usd",
    help: "US dollars per million tokens that the user model reads (default: no cost is reported)",
    operational: true,
  },
  {
    name: "user-output-price",
    kind: price,
    value: "usd",
    help: "US dollars per million tokens that the user model writes",
    operational: true,
  },
  {
    name: "user-script",
    kind: text,
    value: "file",
    help:
      "lines of the scripted user: a JSON list, or an object of lists by task; with " +
      '{"text": …, "leaves": true} the user leaves',
    operational: true,
  },
] as const satisfies readonly Setting[];

/** The configuration of the user. */
export type UserConfig =
  /** A scripted user. Absent file: the environment's own user, if it has one. */
  | {
      readonly strategy: "scripted";
      readonly scriptFile?: string;
      /** True if no setting names a user. An environment without a user then has none. */
      readonly isAssumed?: true;
    }
  | { readonly strategy: "human" }
  | {
      readonly strategy: "llm" | "react" | "verify" | "reflection";
      readonly model: ChatModelConfig;
      /** The temperature. Absent: the server's default. */
      readonly temperature?: number;
    };

type UserValues = SettingValues<(typeof userSettings)[number]>;

/**
 * Reads the configuration of the user. The time limit of its replies is one of the episode's
 * limits.
 *
 * @throws UsageError if a setting is missing.
 */
export function readUserConfig(values: UserValues): UserConfig {
  const strategy = requireSetting(
    values.user,
    "user",
    "who the agent talks to, such as llm or scripted",
  );
  if (strategy === "human") return { strategy };
  if (strategy === "scripted") {
    return { strategy, ...withoutUndefined({ scriptFile: values["user-script"] }) };
  }
  const endpoint = "the user model's endpoint, such as http://127.0.0.1:8000/v1";
  const model = {
    baseUrl: requireSetting(values["user-url"], "user-url", endpoint),
    model: requireSetting(values["user-model"], "user-model", "the name of the user model"),
    maxConcurrent: values["user-concurrency"],
    ...withoutUndefined({ apiKeyEnv: values["user-api-key-env"], prices: readPrices(values) }),
  };
  return { strategy, model, ...withoutUndefined({ temperature: values["user-temperature"] }) };
}

/** Reads prices. If only one is given, the other is 0. */
function readPrices(values: UserValues): ChatPrices | undefined {
  const { "user-input-price": inputUsd, "user-output-price": outputUsd } = values;
  if (inputUsd === undefined && outputUsd === undefined) return undefined;
  return { inputUsd: inputUsd ?? 0, outputUsd: outputUsd ?? 0 };
}
