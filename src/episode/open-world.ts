import { RolloutError } from "../errors.ts";
import type { Environment, World } from "../environment/environment.ts";
import { toolsFromOpenAi } from "../message.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import { noRedactor } from "../secrets/redactor.ts";
import type { UserSession } from "../user/user.ts";
import { describe, refuse, requireTools } from "./check/foreign-value.ts";
import { disposeForeignWorld, openForeignWorld, worldTermsOf } from "./foreign-world.ts";
import { answerTerms, tolerate, type Play } from "./play.ts";

/**
 * Opens the task's world. A world that opens after the time limit is disposed of.
 *
 * @throws RolloutError with party `environment`.
 */
export async function openWorld(play: Play, user: UserSession): Promise<World> {
  let opened: OpenedWorld | undefined;
  const open = async (): Promise<WorldFacts> => {
    opened = await openLive(play, user);
    return opened.facts;
  };
  try {
    const facts = await play.inputs.answer(
      "open",
      open,
      answerTerms(play, play.setup.limits.toolTimeoutMs),
    );
    if (opened === undefined) return recordedWorld(play, facts);
    return opened.world;
  } catch (error) {
    // The world differs from its recording. No other code disposes of it.
    if (opened !== undefined) {
      if (error instanceof RolloutError) play.playback?.leaveUnlessNext("open", error);
      else play.playback?.leave();
      await disposeWorld(play, opened.world);
    }
    throw error;
  }
}

interface OpenedWorld {
  readonly world: World;
  readonly facts: WorldFacts;
}

/** The tools and the policy text of a task. */
type Terms = Required<Pick<World, "tools" | "policyText">>;

/** JSON of the tools that all tasks of an environment share. */
const commonTexts = new WeakMap<Terms["tools"], string>();

function textOf(tools: Terms["tools"], environment: Environment): string {
  const known = tools === environment.tools ? commonTexts.get(tools) : undefined;
  if (known !== undefined) return known;
  const text = writeTools(tools);
  if (tools === environment.tools) commonTexts.set(tools, text);
  return text;
}

function writeTools(tools: Terms["tools"]): string {
  return stringifyPythonJson(tools.map(({ openai }) => openai));
}

/**
 * Returns the tools and the policy text of a task, without known secrets. The world's own ones replace those of the
 * environment.
 *
 * @throws RolloutError `environment/bad-world` if they are invalid.
 */
export function termsOf(
  { redactor, setup }: Pick<Play, "redactor" | "setup">,
  world: World,
): Terms {
  const { environment } = setup;
  const terms = soundTerms(world, environment);
  if (redactor === noRedactor) return terms;
  const facts = { tools: textOf(terms.tools, environment), policyText: terms.policyText };
  const clean = redactor.without(facts);
  return clean === facts ? terms : { ...terms, ...readFacts(clean) };
}

/** Checks the environment's values as strictly as the world's. */
function soundTerms(world: World, environment: Environment): Terms {
  const { tools = environment.tools, policyText = environment.policyText } = world;
  const code = "environment/bad-world";
  const owner = `of ${environment.name}`;
  const sourceOf = (name: keyof Terms, value: unknown): string =>
    `${value === environment[name] ? "environment" : "world"}.${name} ${owner}`;
  requireTools(tools, { code, place: sourceOf("tools", tools) });
  const given: unknown = policyText;
  if (typeof given !== "string") {
    refuse({ code, place: sourceOf("policyText", given) }, `it is ${describe(given)}`, "a text");
  }
  return { tools, policyText };
}

/** The recorded facts of a world that is not repeatable. JSON-able. */
interface WorldFacts {
  /** Definitions in OpenAI's shape, as JSON. */
  readonly tools?: string;
  readonly policyText?: string;
}

function describeWorld({ tools, policyText }: World): WorldFacts {
  return {
    ...(tools && { tools: writeTools(tools) }),
    ...(policyText !== undefined && { policyText }),
  };
}

/** Returns a stand-in for a world that a replay does not open. All its answers come from the recording. */
function recordedWorld({ playback }: Play, facts: WorldFacts): World {
  const refuse = (): never => {
    throw playback!.end("the recording does not say what its world answered");
  };
  return {
    ...readFacts(facts),
    begin: refuse,
    step: refuse,
    score: refuse,
    userUsage: refuse,
    [Symbol.asyncDispose]: async () => {},
  };
}

function readFacts({ tools, policyText }: WorldFacts): Pick<World, "tools" | "policyText"> {
  return {
    ...(tools !== undefined && {
      tools: toolsFromOpenAi(parsePythonJson(tools), "recorded tools"),
    }),
    ...(policyText !== undefined && { policyText }),
  };
}

async function openLive(play: Play, user: UserSession): Promise<OpenedWorld> {
  const terms = { ...worldTermsOf(play), outside: play.outside.world };
  let facts: WorldFacts = {};
  const world = await openForeignWorld(terms, user, {
    read: (opened) => (facts = describeWorld(opened)),
    dispose: async (opened) => await disposeWorld(play, opened),
  });
  return { world, facts };
}

/** Disposes of a world after any end of its episode. Failures are reported and tolerated. */
export async function disposeWorld(play: Play, world: World): Promise<void> {
  const disposing = async (): Promise<void> => await disposeForeignWorld(worldTermsOf(play), world);
  await tolerate(play, async () => await play.calls.disposing(disposing));
}
