import { crossBoundary } from "../../episode/boundary.ts";
import { CallWatch } from "../../episode/call-watch.ts";
import type { Episode } from "../../episode/episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "../../episode/episode-setup.ts";
import type { Action, Step, World } from "../../environment/environment.ts";
import { RolloutError, type Failure } from "../../errors.ts";
import { systemClock } from "../../internal/clock.ts";
import type { ToolDefinition } from "../../message.ts";
import { toPlainJson, toPyValue, type PlainJson, type PyDict } from "../../python/value.ts";
import type { StopReason } from "../../trajectory/sample.ts";
import { inProcessUrl, type GatewayInProcess } from "../create-gateway.ts";
import type { SessionReward } from "../session/session.ts";
import type { ForeignAgent, ForeignTool } from "./foreign-agent.ts";

/** Who plays, and how. */
export interface ForeignAgentSetup extends Pick<
  EpisodeSetup,
  "environment" | "user" | "limits" | "now" | "clock"
> {
  readonly agent: ForeignAgent;
  /** Samples for the agent. One serves any number of episodes at once. */
  readonly gateway: GatewayInProcess;
  /** Where the gateway listens, for agents in a process of their own. Default: in this process. */
  readonly baseUrl?: string;
}

/**
 * Plays one attempt at a task with an agent that was written elsewhere: it hears the user, calls the
 * environment's tools, and asks the gateway for the policy's turns. A broken or silent agent is a failure
 * of the party `agent`; it has no reward.
 *
 * @throws the signal's reason where the signal is aborted.
 */
export async function playForeignAgent(
  assignment: EpisodeAssignment,
  setup: ForeignAgentSetup,
  { signal }: { readonly signal: AbortSignal },
): Promise<Episode> {
  const { gateway } = setup.gateway;
  const { task, groupId, sampleIndex, seed, rolloutId } = assignment;
  const startedAtMs = setup.now();
  const opened = await gateway.openSession({ taskId: rolloutId, seed });
  const session = gateway.store.byId(opened.sessionId)!;
  using watch = new CallWatch(signal, setup.clock ?? systemClock);
  const played = await playInWorld(assignment, setup, { watch, apiKey: opened.token });
  const { done, failure, reward, userUsage } = played;
  const episode = await gateway.finish(session, {
    ...(failure === undefined ? {} : { failure }),
    ...(reward === undefined ? {} : { reward }),
  });
  signal.throwIfAborted();
  return {
    ...episode,
    ...{ rolloutId, groupId, taskId: task.id, taskIndex: task.index, sampleIndex, seed },
    ...{ environment: task.environment, split: task.split, userUsage, startedAtMs },
    ...(episode.outcome === "completed" ? { stopReason: done ?? "finished" } : {}),
    durationMs: Math.max(0, setup.now() - startedAtMs),
  };
}

interface Played {
  readonly done?: Extract<StopReason, NonNullable<Step["done"]>>;
  readonly failure?: Failure;
  readonly reward?: SessionReward;
  readonly userUsage: Episode["userUsage"];
}

const noUsage = { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 };

async function playInWorld(
  assignment: EpisodeAssignment,
  setup: ForeignAgentSetup,
  { watch, apiKey }: { readonly watch: CallWatch; readonly apiKey: string },
): Promise<Played> {
  const { task, seed } = assignment;
  const { environment, limits, user } = setup;
  const { toolTimeoutMs, scoreTimeoutMs } = limits;
  const at = (what: string) => `${what} task ${task.id}`;
  let world: World | undefined;
  try {
    const opening = { party: "environment", what: at("open"), timeoutMs: toolTimeoutMs } as const;
    world = await crossBoundary(watch, opening, async (signal) =>
      environment.open(task, { user: user.open(task, { seed }), signal }),
    );
    const desk = await runAgent(assignment, setup, { watch, apiKey, world });
    const scoring = { party: "grader", what: at("score"), timeoutMs: scoreTimeoutMs } as const;
    const score = await crossBoundary(watch, scoring, async (signal) => world!.score({ signal }));
    const { reward, details } = score;
    const done = desk.done === undefined ? {} : { done: desk.done };
    return { ...done, reward: { reward, details }, userUsage: world.userUsage() };
  } catch (error) {
    watch.throwIfAborted();
    if (!(error instanceof RolloutError)) throw error;
    return { failure: error.toFailure(), userUsage: world?.userUsage() ?? noUsage };
  } finally {
    await world?.[Symbol.asyncDispose]();
  }
}

async function runAgent(
  { task }: EpisodeAssignment,
  setup: ForeignAgentSetup,
  open: { readonly watch: CallWatch; readonly apiKey: string; readonly world: World },
): Promise<WorldDesk> {
  const { world, watch, apiKey } = open;
  const { agent, environment, limits, gateway, baseUrl = inProcessUrl } = setup;
  const what = (did: string) => `${did} in task ${task.id}`;
  const { userTimeoutMs, episodeTimeoutMs } = limits;
  const hearing = {
    party: "user",
    what: what("hear the first line"),
    timeoutMs: userTimeoutMs,
  } as const;
  const firstUserText = await crossBoundary(watch, hearing, async (signal) =>
    world.begin({ signal }),
  );
  const running = {
    party: "agent",
    what: what("run the agent"),
    timeoutMs: episodeTimeoutMs,
  } as const;
  const desk = new WorldDesk(world);
  try {
    await crossBoundary(watch, running, async (signal) => {
      desk.signal = signal;
      await agent.run({
        ...{ task, firstUserText, baseUrl, apiKey, signal },
        policyText: world.policyText ?? environment.policyText,
        tools: (world.tools ?? environment.tools).map((tool) => desk.offer(tool)),
        say: async (text) => await desk.say(text),
        fetch: gateway.fetch,
      });
    });
  } catch (error) {
    // What the world did not do is not the agent's failure, even where the agent passes it on.
    throw desk.failure ?? error;
  }
  if (desk.failure !== undefined) throw desk.failure;
  return desk;
}

/** The world as an agent sees it: one thing is done at a time. */
class WorldDesk {
  done: Step["done"];
  failure: RolloutError | undefined;
  signal: AbortSignal = new AbortController().signal;
  readonly #world: World;
  #last: Promise<unknown> = Promise.resolve();

  constructor(world: World) {
    this.#world = world;
  }

  offer({ name, openai }: ToolDefinition): ForeignTool {
    const body = openai.get("function") as PyDict;
    const description = body.get("description");
    const parameters = toPlainJson(body.get("parameters") ?? new Map());
    return {
      name,
      description: typeof description === "string" ? description : "",
      parameters: JSON.parse(JSON.stringify(parameters)) as ForeignTool["parameters"],
      call: async (given) => {
        const value = toPyValue((given ?? {}) as PlainJson);
        const step = await this.#step({ type: "call", name, arguments: value as PyDict });
        return step?.observation ?? "Error: the conversation is over";
      },
    };
  }

  async say(content: string): Promise<string | undefined> {
    const step = await this.#step({ type: "say", content });
    return step === undefined || step.done !== undefined ? undefined : step.observation;
  }

  async #step(action: Action): Promise<Step | undefined> {
    const before = this.#last;
    const work = (async () => {
      await before;
      if (this.done !== undefined || this.failure !== undefined) return undefined;
      try {
        const step = await this.#world.step(action, { signal: this.signal });
        this.done = step.done;
        return step;
      } catch (error) {
        if (error instanceof RolloutError) this.failure = error;
        throw error;
      }
    })();
    this.#last = work.catch(() => {});
    return await work;
  }
}
