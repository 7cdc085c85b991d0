import { describe, expect, test, vi } from "vitest";
import type { Outside } from "../outside.ts";
import { PlaybackStop } from "../outside.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { createDeferred } from "../testing/deferred.ts";
import { defineEnvironment } from "./define-environment.ts";
import type { Action } from "./environment.ts";
import { EpisodeResources } from "./episode-resources.ts";
import { playActions } from "./play-actions.ts";

const { signal } = new AbortController();
const use: Action = { type: "call", name: "use", arguments: new Map() as unknown as PyDict };

/** Records in `log` when it is opened and closed. */
function opener(log: string[], name: string, onClose: () => void = () => {}) {
  return async () => {
    log.push(`open ${name}`);
    return {
      name,
      [Symbol.asyncDispose]: async () => {
        log.push(`close ${name}`);
        onClose();
      },
    };
  };
}

describe("EpisodeResources", () => {
  test("opens each once, closes them in reverse order, and reports which did not close", async () => {
    const log: string[] = [];
    const resources = new EpisodeResources();
    const [one, other] = [{}, {}];
    await Promise.all([
      resources.get(one, opener(log, "one")),
      resources.get(one, opener(log, "one")),
    ]);
    const stuck = opener(log, "other", () => {
      throw new Error("stuck");
    });
    await resources.get(other, stuck);
    await expect(resources[Symbol.asyncDispose]()).rejects.toThrow("stuck");
    expect(log).toEqual(["open one", "open other", "close other", "close one"]);
  });

  test("retries a failed opening, and opens no resource after the episode", async () => {
    const resources = new EpisodeResources();
    const key = {};
    const refuse = async () => await Promise.reject<AsyncDisposable>(new Error("full"));
    await expect(resources.get(key, refuse)).rejects.toThrow("full");
    const log: string[] = [];
    await resources.get(key, opener(log, "it"));
    await resources[Symbol.asyncDispose]();
    await expect(resources.get(key, opener(log, "late"))).rejects.toThrow("the episode is over");
    expect(log).toEqual(["open it", "close it"]);
    const bare = async () => ({}) as AsyncDisposable;
    await expect(new EpisodeResources().get(key, bare)).rejects.toThrow(
      "it has no method [Symbol.asyncDispose]",
    );
  });
});

const nextTurn = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));
const hang = async (): Promise<never> => await new Promise<never>(() => {});

describe("a hanging disposal does not keep others from being freed", () => {
  test("a resource that is still opening: it is freed when it is open", async () => {
    const log: string[] = [];
    const resources = new EpisodeResources();
    const coming = createDeferred<Awaited<ReturnType<ReturnType<typeof opener>>>>();
    await resources.get({}, opener(log, "container"));
    const late = resources.get({}, async () => await coming.promise);
    await resources.get({}, opener(log, "session"));
    const freed = resources[Symbol.asyncDispose]();
    await new Promise((resolve) => setImmediate(resolve));
    expect(log.slice(2)).toEqual(["close session", "close container"]);
    coming.resolve(await opener(log, "late")());
    await Promise.all([late, freed]);
    expect(log.slice(4)).toEqual(["open late", "close late"]);
  });

  test("a hanging disposal: earlier resources are freed after the signal aborts", async () => {
    const log: string[] = [];
    const [limit, rest] = [new AbortController(), new AbortController()];
    const limitRest = vi.fn(() => rest.signal);
    const resources = new EpisodeResources(limitRest);
    await resources.get({}, opener(log, "network"));
    await resources.get({}, opener(log, "container"));
    const hanging = async () => ({ [Symbol.asyncDispose]: hang });
    await resources.get({}, hanging);
    await resources.get({}, opener(log, "session"));
    await resources.get({}, hanging);
    void resources.free({ first: async () => log.push("first"), signal: limit.signal });
    await nextTurn();
    expect(log.slice(3)).toEqual(["first"]);
    expect(limitRest).not.toHaveBeenCalled();
    limit.abort();
    await nextTurn();
    expect(log.slice(4)).toEqual(["close session"]);
    rest.abort();
    await nextTurn();
    expect(log.slice(5)).toEqual(["close container", "close network"]);
    expect(limitRest).toHaveBeenCalledTimes(1);
  });

  test("a slow disposal keeps the resources it uses until the signal aborts", async () => {
    const log: string[] = [];
    const resources = new EpisodeResources();
    await resources.get({}, opener(log, "container"));
    const copied = createDeferred();
    const { signal: patient } = new AbortController();
    const start = vi.spyOn(globalThis, "setTimeout");
    const first = async (): Promise<void> => {
      await copied.promise;
      log.push("copied out");
    };
    const freed = resources.free({ first, signal: patient });
    await nextTurn();
    // No timer ends its patience, or keeps the process alive.
    expect(start).not.toHaveBeenCalled();
    start.mockRestore();
    copied.resolve();
    await freed;
    expect(log).toEqual(["open container", "copied out", "close container"]);
  });

  test("a dispose() that hangs: at the episode's limit, its resources are freed", async () => {
    const log: string[] = [];
    const environment = worldWith(log, { dispose: hang });
    const task = environment.task("test", 0);
    const user = environment.user.open(task, { seed: 0 });
    const world = await environment.open(task, { user, signal });
    const limit = new AbortController();
    void world[Symbol.asyncDispose]({ signal: limit.signal });
    await nextTurn();
    expect(log).toEqual(["open it"]);
    limit.abort();
    await nextTurn();
    expect(log).toEqual(["open it", "close it"]);
  });

  test("a state that is never created: its resources are freed after the opening was abandoned", async () => {
    const log: string[] = [];
    const environment = worldWith(log, {
      initialState: async (_: unknown, context: { resource: EpisodeResources["get"] }) => {
        await context.resource({}, opener(log, "it"));
        log.push("hangs");
        return await hang();
      },
    });
    const task = environment.task("test", 0);
    const user = environment.user.open(task, { seed: 0 });
    const waiting = new AbortController();
    void environment.open(task, { user, signal: waiting.signal });
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual(["open it", "hangs"]);
    waiting.abort();
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual(["open it", "hangs", "close it"]);
  });
});

/** An environment with a state, a tool and a score that share one resource. */
function worldWith(log: string[], parts: object = {}) {
  const key = {};
  return defineEnvironment({
    name: "world",
    tasks: [{ instruction: "Go." }],
    policy: "Use it.",
    initialState: async (_, { resource }) => ({
      name: (await resource(key, opener(log, "it"))).name,
    }),
    tools: {
      use: {
        description: "Use it.",
        execute: async (_, state, { resource, outside }) => {
          const { name } = await resource(key, opener(log, "another"));
          return await outside("draw", () => `${state.name} is ${name}`);
        },
      },
    },
    score: async (_, _task, { resource }) =>
      (await resource(key, opener(log, "third"))).name === "it",
    ...parts,
  });
}

describe("an environment's resources", () => {
  test("are shared by state, tools and score, and freed after dispose()", async () => {
    const log: string[] = [];
    const environment = worldWith(log, { dispose: () => log.push("dispose") });
    const task = environment.task("test", 0);
    const actions = [use];
    const played = await playActions(
      environment,
      { task, user: environment.user, actions },
      { signal },
    );
    expect(played.steps[0]?.observation).toBe("it is it");
    expect(played.score.reward).toBe(1);
    expect(log).toEqual(["open it", "dispose", "close it"]);
  });

  test("are freed if the state cannot be created", async () => {
    const log: string[] = [];
    const environment = worldWith(log, {
      initialState: async (
        _: unknown,
        { resource }: { resource: EpisodeResources["get"] },
      ): Promise<never> => {
        await resource({}, opener(log, "it"));
        throw new Error("no state");
      },
    });
    const task = environment.task("test", 0);
    const user = environment.user.open(task, { seed: 0 });
    await expect(environment.open(task, { user, signal })).rejects.toThrow("no state");
    expect(log).toEqual(["open it", "close it"]);
  });

  test("come with `outside`; the end of its recording is not a failure", async () => {
    const environment = worldWith([], { repeatable: true });
    expect(environment.repeatable).toBe(true);
    const task = environment.task("test", 0);
    const user = environment.user.open(task, { seed: 0 });
    const calls: string[] = [];
    const outside: Outside = async (what) => {
      calls.push(what);
      throw new PlaybackStop("the recording ends here");
    };
    await using world = await environment.open(task, { user, signal, outside });
    await expect(world.step(use, { signal })).rejects.toThrow(PlaybackStop);
    expect(calls).toEqual(["draw"]);
  });
});
