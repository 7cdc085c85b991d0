import path from "node:path";
import { toolCallingAgent } from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import type { Engine, GenerateRequest, Generation } from "../../src/engine/engine.ts";
import type { Environment } from "../../src/environment/environment.ts";
import { seededRandom, type Random } from "../../src/environment/seeded-random.ts";
import { lamp, lampTask, switchCall } from "../../src/episode/lamp-episode.fixture.ts";
import type { Input } from "../../src/episode/input.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { RolloutError, UsageError } from "../../src/errors.ts";
import { findToolCallParser } from "../../src/parser/registry.ts";
import { fakeMachine } from "../../src/run/machine.fixture.ts";
import { testManifest } from "../../src/run/run-folder.fixture.ts";
import { RunFolder } from "../../src/run/run-folder.ts";
import type { LiveRun } from "../../src/run/live-run.ts";
import { startRun } from "../../src/run/start-run.ts";
import { taskList } from "../../src/run/task-source.ts";
import {
  characterIds,
  characterRenderer,
  characterStopId,
} from "../../src/testing/character-renderer.ts";
import { hashIds } from "../../src/trajectory/rolling-hash.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { verifySample } from "../../src/trajectory/verify-sample.ts";
import { scriptedUser } from "../../src/user/scripted-user.ts";
import type { User } from "../../src/user/user.ts";
import { MemoryDisk, ProcessDeath, type DiskFault } from "./memory-disk.ts";
import { SimulatedClock } from "./simulated-clock.ts";

/** What a simulated run went through. */
export interface Simulated {
  readonly seed: number;
  /** Processes that played it, one after the other. */
  readonly lives: number;
  readonly turns: number;
  /** What must hold and does not; none where all is well. */
  readonly wrong: readonly string[];
}

const dir = "/run";
const taskCount = 4;
const size = 2;
/** No wait is as long as this, a hundred times over. */
const limitMs = 1e9;

/**
 * Plays a whole run in simulated time: engines that are slow, die, lie and change their weights, users that
 * fail, a disk that fails and forgets, processes that are killed anywhere and clocks that jump. Everything
 * follows from the seed.
 */
export async function simulate(seed: number): Promise<Simulated> {
  const random = seededRandom(`simulation/${seed}`);
  const world = new SimulatedWorld(random);
  using _pace = simulatePace(seededRandom(`pace/${seed}`), () => world.note());
  const troubledLives = random.between(0, 4);
  let lives = 0;
  const wrong: string[] = [];
  try {
    for (let isDone = false; !isDone; lives++) {
      // The last life meets no more trouble: it has to bring the run to its end.
      isDone = await world.live(lives, lives >= troubledLives);
      if (lives > 12) throw new Error("the run does not come to its end");
    }
    wrong.push(...world.check());
  } catch (error) {
    wrong.push(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  }
  return { seed, lives, turns: world.turnCount, wrong };
}

/** How long work takes decides who goes on first (see `takeTurn()`): that follows from the seed, too. */
function simulatePace(random: Random, onWork: () => void): Disposable {
  const now = performance.now.bind(performance);
  let atMs = 0;
  performance.now = () => {
    onWork();
    return (atMs += random.chance(0.1) ? 4 : 0);
  };
  return {
    [Symbol.dispose]() {
      performance.now = now;
    },
  };
}

/** A line of `recording.jsonl`, as far as it is looked at. */
interface WrittenLine {
  readonly type: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly inputs?: readonly Input[];
}

class SimulatedWorld {
  readonly #random: Random;
  readonly #clock = new SimulatedClock();
  readonly #disk: MemoryDisk;
  /** What the engine sampled for which prompt, by session: to compare the rows with. */
  readonly #sampled = new Map<string, number[][]>();
  /** Episodes of which somebody was told that they are finished. */
  readonly #reported = new Set<string>();
  /** Places of groups that were handed out, and of those of which it is noted that they were taken. */
  readonly #handedOut = new Set<number>();
  readonly #taken = new Set<number>();
  /** Policy calls that a recording on the disk answers, by session and hash of the prompt. */
  #journalled = new Set<string>();
  readonly #wrong: string[] = [];
  /** Policy calls that hung. */
  #hungCount = 0;
  #version = 1;
  turnCount = 0;

  constructor(random: Random) {
    this.#random = random;
    this.#disk = new MemoryDisk(() => this.#clock.now());
  }

  /** Something happens: time does not move on yet. */
  note(): void {
    this.#clock.note();
  }

  /** One process, from its start to its death or the run's end. */
  async live(life: number, isCalm: boolean): Promise<boolean> {
    const random = this.#random;
    const troubles = isCalm ? 0 : random.next();
    const dead = { isDead: false };
    const stop = new AbortController();
    const deathCall = isCalm || random.chance(0.3) ? Infinity : random.between(1, 260);
    let callCount = 0;
    const files = this.#disk.files((operation, file): DiskFault => {
      this.#clock.note();
      callCount += 1;
      if (dead.isDead || callCount > deathCall) {
        dead.isDead = true;
        return "crash";
      }
      if (isCalm || file.endsWith("run.lock")) return undefined;
      if (operation === "write" && random.chance(0.01 * troubles)) return "short";
      return random.chance(0.002 * troubles) ? "fail" : undefined;
    });
    let end: "finished" | "stopped" | undefined;
    const playing = (async () => {
      await using folder = await RunFolder.open(dir, testManifest, {
        retryFailed: isCalm,
        files,
        lock: { machine: fakeMachine({ pid: 100 + life }) },
      });
      await this.#lookInto(folder);
      if (random.chance(0.2)) await this.#tryAsSecond(life);
      const run = startRun({
        source: taskList(this.#environment, {
          split: "test",
          taskIndexes: Array.from({ length: taskCount }, (_, index) => index),
        }),
        setup: {
          environment: this.#environment,
          user: this.#user(troubles),
          engine: this.#engine(troubles),
          renderer: characterRenderer(),
          agent: toolCallingAgent({
            parser: findToolCallParser("qwen25"),
            toolUsePolicy: toolUsePolicies.many,
          }),
          sampling: {},
          limits: { ...defaultLimits, maxTurns: 6 },
          // Clocks of machines jump.
          now: () => 1_000_000 + this.#clock.now() + (random.chance(0.01) ? 3_600_000 : 0),
          clock: this.#clock,
        },
        grouping: { size, attempts: 2 },
        admission: { concurrency: random.between(1, 6) },
        folder,
        redeliver: true,
        maxFailuresInRow: 1000,
        signal: stop.signal,
        onEpisode: ({ failure, outcome, reward, rolloutId }) => {
          if (outcome !== "failed") this.#reported.add(rolloutId);
          else if (reward !== undefined) this.#wrong.push(`${rolloutId} failed and is scored`);
          if (failure?.code === "engine/timeout" && this.#hungCount === 0) {
            this.#wrong.push(`${rolloutId} waited in vain for an engine that was not hung`);
          }
        },
      });
      this.#steer(run, isCalm, stop);
      await this.#takeAll(run);
      end = (await run.result).end === "finished" ? "finished" : "stopped";
    })();
    let failure: unknown;
    let isOver = false;
    void playing
      .catch((error: unknown) => (failure = error))
      .finally(() => {
        isOver = true;
        this.#clock.note();
      });
    await this.#clock.run(() => isOver || dead.isDead, limitMs);
    if (dead.isDead) {
      // Nothing of a dead process happens any more.
      stop.abort(new ProcessDeath("the process is dead"));
      this.#clock.clear();
      if (random.chance(0.5)) this.#disk.crash(random);
      return false;
    }
    const isOutage = failure instanceof UsageError;
    if (failure !== undefined && !isOutage) throw failure as Error;
    if (isCalm && failure !== undefined) throw failure as Error;
    return end === "finished" && isCalm;
  }

  /** Takes the groups as they come: each at least once, and none again once that is noted. */
  async #takeAll(run: LiveRun): Promise<void> {
    let last: number | undefined;
    for await (const { groupIndex } of run) {
      // Whoever is given another one has taken the last.
      if (last !== undefined) this.#taken.add(last);
      if (this.#taken.has(groupIndex)) {
        this.#wrong.push(`group ${groupIndex} was taken and is handed out again`);
      }
      this.#handedOut.add(groupIndex);
      last = groupIndex;
    }
    if (last !== undefined) this.#taken.add(last);
  }

  /** What was reported is there, and what was journalled is not sampled again. */
  async #lookInto(folder: RunFolder): Promise<void> {
    const finished = new Set(folder.finished.map(({ rolloutId }) => rolloutId));
    for (const rolloutId of this.#reported) {
      if (!finished.has(rolloutId)) this.#wrong.push(`${rolloutId} was reported and is lost`);
    }
    this.#journalled = new Set();
    // Read as it stands, and not as the product reads it.
    const latest = new Map<string, number>();
    const journalled: { readonly rolloutId: string; attempt: number; promptHash: string }[] = [];
    const lines = this.#disk.text(path.join(dir, "recording.jsonl")).split("\n");
    // The last one is torn, or empty.
    for (const line of lines.slice(0, -1)) {
      const { attempt, inputs = [], rolloutId, type } = JSON.parse(line) as WrittenLine;
      latest.set(
        rolloutId,
        type === "end" ? Infinity : Math.max(latest.get(rolloutId) ?? 0, attempt),
      );
      for (const input of inputs) {
        const isWhole = input.type === "generation" && input.isPartial !== true;
        if (!isWhole || !("value" in input.outcome)) continue;
        journalled.push({ rolloutId, attempt, promptHash: input.promptHash });
      }
    }
    for (const { rolloutId, attempt, promptHash } of journalled) {
      if (finished.has(rolloutId) || latest.get(rolloutId) !== attempt) continue;
      this.#journalled.add(`${rolloutId}:${attempt} ${promptHash}`);
    }
  }

  /** While one process writes, no other one can. */
  async #tryAsSecond(life: number): Promise<void> {
    const machine = fakeMachine({ pid: 900 }, [100 + life]);
    try {
      await using _second = await RunFolder.open(dir, testManifest, {
        retryFailed: false,
        files: this.#disk.files(() => undefined),
        lock: { machine },
      });
      this.#wrong.push("two processes write at once");
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
    }
  }

  #expectedIds(): readonly string[] {
    return Array.from(
      { length: taskCount * size },
      (_, index) => `lamp/test/${Math.floor(index / size)}#${index % size}`,
    );
  }

  /** Weights change, runs are paused, interrupted and stopped at moments of their own. */
  #steer(run: LiveRun, isCalm: boolean, stop: AbortController): void {
    const random = this.#random;
    if (isCalm) return;
    const count = random.between(0, 3);
    for (let index = 0; index < count; index++) {
      this.#clock.after(random.between(1, 4000), () => {
        const mode = random.pick(["hold", "interrupt", "finish"] as const);
        const version = this.#version + 1;
        void run
          // An update that waited is overtaken by one that did not: weights do not go back.
          .updatePolicy(
            version,
            async () => void (this.#version = Math.max(this.#version, version)),
            mode,
          )
          .catch(() => {});
      });
    }
    if (random.chance(0.2))
      this.#clock.after(random.between(1, 4000), () => void run.interrupt().catch(() => {}));
    if (random.chance(0.2)) {
      this.#clock.after(random.between(1, 4000), () => stop.abort(new Error("stopped")));
    }
  }

  readonly #environment: Environment = {
    ...lamp(),
    repeatable: true,
    splits: { test: taskCount },
    task: (split, index) => ({ ...lampTask, id: `lamp/${split}/${index}`, split, index }),
  };

  /** Says its lines, and fails now and then. */
  #user(troubles: number): User {
    const random = this.#random;
    const lines = ["Lamp on, please.", "Well?", { text: "Bye.", leaves: true }] as const;
    const inner = scriptedUser({ lines });
    return {
      strategy: "simulated",
      repeatable: true,
      open: (task, options) => {
        const session = inner.open(task, options);
        const { outside } = options;
        const reply = async (what: string): Promise<void> => {
          await outside!(what, async () => {
            await this.#clock.sleep(random.between(1, 200));
            if (!random.chance(0.05 * troubles)) return "said";
            throw new RolloutError("user/overloaded", "Cannot reply: 429", { retryable: true });
          });
        };
        return {
          begin: async (call) => {
            await reply("begin");
            return await session.begin(call);
          },
          reply: async (text, call) => {
            await reply("reply");
            return await session.reply(text, call);
          },
          usage: () => session.usage(),
        };
      },
    };
  }

  /** What the policy samples follows from the prompt alone; when, and what goes wrong, does not. */
  #engine(troubles: number): Engine {
    const random = this.#random;
    return {
      kind: "simulated",
      generate: async (request, options): Promise<Generation> => {
        // A play after a failure asks anew.
        const [attempt] = request.requestId.slice(request.sessionId.length + 1).split(/[.:]/);
        const asked = `${request.sessionId}:${attempt} ${hashIds(request.promptIds)}`;
        if (this.#journalled.has(asked)) {
          this.#wrong.push(`${request.requestId} is sampled again, and is journalled`);
        }
        const version = this.#version;
        const wanted = restOfTurn(request);
        let count = wanted.length;
        const ms = random.between(1, 900);
        const fate = random.next();
        if (fate < 0.02 * troubles) {
          throw new RolloutError("engine/unreachable", "Cannot connect", { retryable: true });
        }
        if (fate < 0.03 * troubles) {
          this.#hungCount += 1;
          await this.#clock.sleep(5e6, { signal: options!.signal! });
        }
        const isCut = await this.#waitOrCut(ms, options?.cutShort, options?.signal);
        if (isCut) count = random.between(0, wanted.length - 1);
        const outputIds = wanted.slice(0, count);
        const isLying = fate > 1 - 0.02 * troubles;
        if (!isLying) this.#note(request, outputIds);
        return {
          outputIds: isLying ? outputIds.map((id) => id + 0x20_0000) : outputIds,
          logprobs: outputIds.map((id) => -(id % 7) / 8),
          finish: isCut ? { type: "length" } : { type: "stop" },
          pieces: [
            {
              requestId: request.requestId,
              tokenCount: count,
              policyVersion: String(version),
              finish: isCut ? "abort" : "stop",
            },
          ],
          discarded: [],
        };
      },
      describe: async () => ({ kind: "simulated", logprobConvention: "tempered" }),
      close: async () => {},
    };
  }

  async #waitOrCut(
    ms: number,
    cutShort: AbortSignal | undefined,
    signal: AbortSignal | undefined,
  ): Promise<boolean> {
    if (cutShort?.aborted === true) return true;
    return await new Promise<boolean>((resolve, reject) => {
      const callOff = this.#clock.after(ms, () => end(() => resolve(false)));
      const onCut = (): void => end(() => resolve(true));
      const onAbort = (): void => end(() => reject(signal!.reason as Error));
      const end = (settle: () => void): void => {
        callOff();
        cutShort?.removeEventListener("abort", onCut);
        signal?.removeEventListener("abort", onAbort);
        this.#clock.note();
        settle();
      };
      cutShort?.addEventListener("abort", onCut, { once: true });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #note({ sessionId, promptIds }: GenerateRequest, outputIds: readonly number[]): void {
    this.turnCount += 1;
    const known = this.#sampled.get(sessionId) ?? [];
    known.push([...promptIds, ...outputIds]);
    this.#sampled.set(sessionId, known);
  }

  /** What must hold when the run has come to its end. */
  check(): readonly string[] {
    const wrong = [...this.#wrong];
    for (let group = 0; group < taskCount; group++) {
      if (!this.#handedOut.has(group)) wrong.push(`group ${group} was never handed out`);
    }
    const lines = (name: string): readonly Record<string, unknown>[] =>
      this.#disk
        .text(path.join(dir, name))
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    const expected = this.#expectedIds();
    const episodes = lines("episodes.jsonl");
    const ids = episodes.map(({ rolloutId }) => String(rolloutId)).toSorted();
    if (ids.join() !== expected.join()) wrong.push(`episodes are ${ids.join(", ")}`);
    const samples = lines("samples.jsonl") as unknown as readonly Sample[];
    const rowIds = samples.map(({ rolloutId }) => rolloutId);
    const scored = episodes.filter(({ outcome }) => outcome === "completed");
    for (const { rolloutId, reward } of scored) {
      if (reward !== 1) wrong.push(`${String(rolloutId)} has the reward ${String(reward)}`);
      if (rowIds.filter((id) => id === rolloutId).length !== 1) {
        wrong.push(`${String(rolloutId)} has not one row`);
      }
    }
    for (const { rolloutId, outcome, reward } of episodes) {
      if (outcome !== "completed" && reward !== undefined && outcome !== "truncated") {
        wrong.push(`${String(rolloutId)} is ${String(outcome)} and has a reward`);
      }
    }
    if (rowIds.join() !== rowIds.toSorted().join()) wrong.push("rows are not in their order");
    for (const sample of samples) wrong.push(...this.#checkRow(sample));
    return wrong;
  }

  #checkRow(sample: Sample): readonly string[] {
    const { rolloutId, tokenIds, lossMask, logprobs, policyVersions, turns } = sample;
    const found = verifySample(sample as unknown as Record<string, unknown>).map(
      ({ rule, detail }) => `${rolloutId}: ${rule}: ${detail}`,
    );
    const known = this.#sampled.get(rolloutId) ?? [];
    for (const { start, end, finish } of turns) {
      const ids = tokenIds.slice(0, end);
      const isSampled = known.some(
        (whole) => whole.length === ids.length && whole.every((id, index) => id === ids[index]),
      );
      if (!isSampled) found.push(`${rolloutId}: ids ${start} to ${end} were never sampled`);
      // Its deadline may have cut a turn short, and nothing else may.
      const isWhole = finish === "stop";
      const text = String.fromCodePoint(...tokenIds.slice(start, isWhole ? end - 1 : end));
      const isTurn = turnTexts.some((turn) => (isWhole ? turn === text : turn.startsWith(text)));
      if (!isTurn || (!isWhole && sample.stopReason !== "deadline")) {
        found.push(`${rolloutId}: a turn is ${JSON.stringify(text)}`);
      }
      const versions = policyVersions.slice(start, end).map(Number);
      if (versions.some((version, index) => version < (versions[index - 1] ?? 0))) {
        found.push(`${rolloutId}: versions go back within a turn: ${versions.join(" ")}`);
      }
      if (lossMask.slice(start, end).some((bit) => bit !== 1)) {
        found.push(`${rolloutId}: a sampled id is masked`);
      }
    }
    const sampledCount = turns.reduce((sum, { start, end }) => sum + end - start, 0);
    if (lossMask.reduce<number>((sum, bit) => sum + bit, 0) !== sampledCount) {
      found.push(`${rolloutId}: something is trained that was not sampled`);
    }
    tokenIds.forEach((id, index) => {
      const logprob = lossMask[index] === 1 ? -(id % 7) / 8 : 0;
      if (logprobs[index] !== logprob && logprobs[index]! + 0 !== logprob + 0) {
        found.push(`${rolloutId}: logprobs[${index}] is ${logprobs[index]}, expected ${logprob}`);
      }
    });
    return found;
  }
}

const turnTexts: readonly string[] = [switchCall, "It is on.", "Goodbye!"];

/** The ids that the policy has still to sample of the turn that a prompt ends with. */
function restOfTurn({ promptIds }: GenerateRequest): readonly number[] {
  const opened = promptIds.filter((id) => id === 0x11_0000).length;
  const index = Math.max(Math.floor((opened - 3) / 2), 0);
  const ids = characterIds(turnTexts[Math.min(index, turnTexts.length - 1)]!);
  const lastOpen = promptIds.lastIndexOf(0x11_0000);
  const heading = "assistant\n".length;
  const sampled = promptIds.length - lastOpen - 1 - heading;
  return promptIds.at(-1) === characterStopId ? ids : ids.slice(sampled);
}
