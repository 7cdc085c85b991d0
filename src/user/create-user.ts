import { z } from "zod";
import type { MeteredChatModel } from "./chat/ai-sdk-chat-model.ts";
import { aiSdkChatModel } from "./chat/ai-sdk-chat-model.ts";
import type { ChatModelConfig } from "./chat/chat-model-config.ts";
import { chatModelFromConfig } from "./chat/chat-model-config.ts";
import { parseConfig } from "./chat/parse-config.ts";
import type { ChatModel } from "./chat/chat-model.ts";
import { humanUser } from "./human-user.ts";
import type { AiSdkLanguageModel } from "./chat/language-model-call.ts";
import { llmUser } from "./llm-user.ts";
import type { QualityGateOptions } from "./quality-gate.ts";
import { withQualityGate } from "./quality-gate.ts";
import { reactUser } from "./react-user.ts";
import { reflectionUser } from "./reflection-user.ts";
import type { ScriptLines } from "./scripted-user.ts";
import { defaultScript, createScriptedUser } from "./scripted-user.ts";
import type { UserPrompts } from "./user-prompts.ts";
import { readLine } from "./read-line.ts";
import { readUserRepairs } from "./user-repairs.ts";
import type { User } from "./user.ts";
import { verifyUser } from "./verify-user.ts";

/** A chat model, a model of the AI SDK, or the configuration of an OpenAI-compatible server. */
export type ChatModelChoice = ChatModel | AiSdkLanguageModel | ChatModelConfig;

/** Settings of a user that a model plays. */
export interface ModelChoices {
  readonly model: ChatModelChoice;
  /** The prompts of the model. Default: prompts that are not from a benchmark. See `readUserPrompts()`. */
  readonly prompts?: UserPrompts;
  /** The repairs: `all`, `none`, or names of `userRepairs`. Default `none` with `prompts`, otherwise `all`. */
  readonly repair?: string | readonly string[];
  readonly greeting?: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
  readonly seeded?: boolean;
  /** The settings of the gate that checks each line of the user. If absent, lines are not checked. */
  readonly qualityGate?: QualityGateOptions;
}

/** Settings of a user that a judge checks. */
export interface JudgeChoices {
  /** The model that judges the lines. Default: the model that plays the user. */
  readonly judge?: ChatModelChoice;
  readonly maxDrafts?: number;
}

/** A user as configuration. Fields that a strategy does not use are errors. */
export type CreateUserOptions =
  /** Default lines: `defaultScript()`. */
  | { readonly strategy: "scripted"; readonly lines?: ScriptLines }
  | { readonly strategy: "human" }
  | ({ readonly strategy: "llm" | "react" } & ModelChoices)
  | ({ readonly strategy: "verify" | "reflection" } & ModelChoices & JudgeChoices);

/** The process environment and terminal of a user. Tests pass their own. */
export interface UserSurroundings {
  /** Environment variables, some of which contain API keys. Default: the process's. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The terminal of a human user. Default: the process's. */
  readonly input?: NodeJS.ReadableStream;
  readonly output?: NodeJS.WritableStream;
}

/**
 * Creates a user from configuration, without reading files or making calls.
 *
 * @throws UsageError that names the invalid field.
 */
export function createUser(options: CreateUserOptions, around: UserSurroundings = {}): User {
  const config = parseConfig(userSchema, options, { what: "create a user", place: "" });
  const { env = process.env, input = process.stdin, output = process.stdout } = around;
  switch (config.strategy) {
    case "scripted":
      return createScriptedUser({ lines: config.lines ?? defaultScript });
    case "human":
      return humanUser({ input, output });
    default:
      return createModelUser(config, env);
  }
}

type ModelUserConfig = Exclude<
  z.infer<typeof userSchema>,
  { readonly strategy: "scripted" | "human" }
>;

function createModelUser(
  config: ModelUserConfig,
  env: Readonly<Record<string, string | undefined>>,
): User {
  const {
    strategy,
    model: modelChoice,
    judge: judgeChoice,
    repair,
    qualityGate,
    ...rest
  } = { judge: undefined, ...config };
  const createdModels: MeteredChatModel[] = [];
  const model = toChatModel(modelChoice, { place: "model", env, createdModels });
  const repairs = repair === undefined ? {} : { repair: readUserRepairs(repair) };
  const shared = { ...rest, ...repairs, model };
  const judge =
    judgeChoice === undefined
      ? model
      : toChatModel(judgeChoice, { place: "judge", env, createdModels });
  const user = {
    llm: () => llmUser(shared),
    react: () => reactUser(shared),
    verify: () => verifyUser({ ...shared, judge }),
    reflection: () => reflectionUser({ ...shared, judge }),
  }[strategy]();
  const watched = qualityGate === undefined ? user : withQualityGate(user, qualityGate);
  if (createdModels.length === 0) return watched;
  const close = async (): Promise<void> => {
    await Promise.all(createdModels.map((model) => model.close()));
  };
  return { ...watched, close };
}

function toChatModel(
  choice: unknown,
  {
    place,
    env,
    createdModels,
  }: {
    place: string;
    env: Readonly<Record<string, string | undefined>>;
    /** The list to which models are added that are created here, so that `close()` can close them. */
    createdModels: MeteredChatModel[];
  },
): ChatModel {
  if (hasMethod(choice, "complete")) return choice as ChatModel;
  if (hasMethod(choice, "doGenerate"))
    return aiSdkChatModel({ model: choice as AiSdkLanguageModel });
  const model = chatModelFromConfig(choice, { place, env, party: "user" });
  createdModels.push(model);
  return model;
}

function hasMethod(value: unknown, name: string): boolean {
  return typeof (value as Record<string, unknown> | null | undefined)?.[name] === "function";
}

const count = z.int().min(1);
const instructed = z.strictObject({ withInstruction: z.string(), withoutInstruction: z.string() });

const modelSchema = z.custom<object>(
  (value) => typeof value === "object" && value !== null,
  "expected a chat model, or its address: {baseUrl, model, …}",
);

const modelFields = {
  model: modelSchema,
  prompts: z
    .strictObject({ llm: instructed, react: instructed, verify: z.string(), reflect: z.string() })
    .exactOptional(),
  repair: z.union([z.string(), z.array(z.string())]).exactOptional(),
  greeting: z.string().exactOptional(),
  temperature: z.number().min(0).exactOptional(),
  maxTokens: count.exactOptional(),
  seeded: z.boolean().exactOptional(),
  qualityGate: z
    .strictObject({
      maxRetakes: z.int().min(0).max(10).exactOptional(),
      maxSharedWords: count.exactOptional(),
    })
    .exactOptional(),
};

const judgeFields = {
  ...modelFields,
  judge: modelSchema.exactOptional(),
  maxDrafts: count.max(100).exactOptional(),
};

const userSchema = z.discriminatedUnion("strategy", [
  z.strictObject({
    strategy: z.literal("scripted"),
    lines: z
      .custom<ScriptLines>(isScript, "expected a list of lines, or a function from task to lines")
      .exactOptional(),
  }),
  z.strictObject({ strategy: z.literal("human") }),
  z.strictObject({ strategy: z.literal("llm"), ...modelFields }),
  z.strictObject({ strategy: z.literal("react"), ...modelFields }),
  z.strictObject({ strategy: z.literal("verify"), ...judgeFields }),
  z.strictObject({ strategy: z.literal("reflection"), ...judgeFields }),
]);

function isScript(value: unknown): boolean {
  if (typeof value === "function") return true;
  return (
    Array.isArray(value) && value.length > 0 && value.every((line) => readLine(line) !== undefined)
  );
}
