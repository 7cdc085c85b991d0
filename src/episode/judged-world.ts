import type { Clock } from "../async/clock.ts";
import type { ComparedMembers } from "../environment/compared-members.ts";
import type {
  Action,
  AgentTurn,
  Environment,
  Score,
  Step,
  World,
} from "../environment/environment.ts";
import type { Task } from "../task.ts";
import type { User, UserSession, UserUsage } from "../user/user.ts";
import { crossLater, suspectOf, type Boundary } from "./boundary.ts";
import { checkOpening, checkScore, checkStep } from "./check/check-foreign.ts";
import { disposeForeignWorld, openForeignWorld, type WorldTerms } from "./foreign-world.ts";
import { openSession } from "./open-session.ts";
import { askUsage } from "./turn/ask-usage.ts";
import { CallWatch } from "./turn/call-watch.ts";
import { UserCallTracker } from "./turn/user-call-tracker.ts";

/** The world that `JudgedWorld.open()` opens, and its user. */
export interface JudgedTerms {
  readonly environment: Environment;
  readonly user: User;
  readonly task: Task;
  readonly seed: number;
  readonly clock: Pick<Clock, "after" | "now">;
  /** The time limit of each call of the environment, in milliseconds. */
  readonly timeoutMs: number;
  /** The time limit of each line of the user, in milliseconds. Default: `timeoutMs`. */
  readonly userTimeoutMs?: number;
  readonly signal: AbortSignal;
  /** Wraps the session that the world talks to. The wrapper gets only lines that a run accepts. */
  readonly wrap?: (session: UserSession) => UserSession;
  readonly onCompared?: (compared: ComparedMembers) => void;
}

/**
 * A task's world that is played without a policy, such as by a person or by given actions. Environment and user are
 * called and judged as in a run: each call has a time limit, each answer and line is checked, and each failure names
 * its party. Each action is a turn.
 */
export class JudgedWorld implements AsyncDisposable {
  /** The world itself. Its members are not judged. */
  readonly world: World;
  readonly #terms: JudgedTerms;
  readonly #worldTerms: WorldTerms;
  readonly #session: UserSession;
  #stepCount = 0;

  private constructor(
    terms: JudgedTerms,
    opened: { worldTerms: WorldTerms; session: UserSession; world: World },
  ) {
    this.#terms = terms;
    this.#worldTerms = opened.worldTerms;
    this.#session = opened.session;
    this.world = opened.world;
  }

  /**
   * Opens the user's session and the world of a task.
   *
   * @throws RolloutError that names the responsible party.
   */
  static async open(terms: JudgedTerms): Promise<JudgedWorld> {
    const { environment, user, task, seed, clock, timeoutMs, signal, onCompared } = terms;
    const { userTimeoutMs = timeoutMs, wrap = (session) => session } = terms;
    const watch = new CallWatch(signal, clock);
    try {
      const about = { taskId: task.id, strategy: user.strategy, timeoutMs: userTimeoutMs };
      const userCalls = new UserCallTracker(about);
      const session = await openSession(watch, { user, task, seed, timeoutMs: userTimeoutMs });
      const worldTerms: WorldTerms = {
        environment,
        task,
        watch,
        clock,
        userCalls,
        timeoutMs,
        ...(onCompared !== undefined && { onCompared }),
      };
      const world = await openForeignWorld(worldTerms, wrap(userCalls.watched(session)), {
        dispose: async (opened) => await disposeForeignWorld(worldTerms, opened),
      });
      return new JudgedWorld(terms, { worldTerms, session, world });
    } catch (error) {
      watch[Symbol.dispose]();
      throw error;
    }
  }

  /** Returns the text that the agent reads first. */
  async begin(): Promise<string> {
    return await this.#cross({ what: "begin the conversation" }, async (signal) =>
      checkOpening(await this.world.begin({ signal }), "world.begin()"),
    );
  }

  /**
   * Performs an action in the world, and checks the answer.
   *
   * @param turn - The turn of the action. Absent: the world gets the action without a turn.
   */
  async step(action: Action, turn?: AgentTurn): Promise<Step> {
    this.#stepCount += 1;
    const name = nameOf(action);
    return await this.#cross({ what: `answer ${name}` }, async (signal) => {
      const given = { signal, ...(turn !== undefined && { turn }) };
      return checkStep(await this.world.step(action, given), `world.step() for ${name}`);
    });
  }

  /** Returns the hash of the state. `undefined` if the world has none. */
  async stateHash(): Promise<string | undefined> {
    return await this.#cross(
      { what: "hash the state" },
      async (signal) => await this.world.stateHash?.({ signal }),
    );
  }

  async score(): Promise<Score> {
    const suspect = suspectOf(this.#terms.environment, "score");
    const actionCounts = Array.from({ length: this.#stepCount }, () => 1);
    return await this.#cross({ party: "grader", what: "score", suspect }, async (signal) =>
      checkScore(
        await this.world.score({ signal, actionCounts }),
        "world.score()",
        this.#stepCount,
      ),
    );
  }

  /** Returns the cost of the user. */
  async userUsage(): Promise<UserUsage> {
    const { user, timeoutMs, userTimeoutMs = timeoutMs } = this.#terms;
    const setup = { user, limits: { userTimeoutMs } };
    return await askUsage({ setup, watch: this.#worldTerms.watch }, this.#session);
  }

  /** Disposes of the world, also if the caller has aborted. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await disposeForeignWorld(this.#worldTerms, this.world);
    } finally {
      this.#worldTerms.watch[Symbol.dispose]();
    }
  }

  /** Calls the world, which may wait for the user. */
  async #cross<Result>(
    { party = "environment", ...about }: Partial<Boundary> & Pick<Boundary, "what">,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const { watch, userCalls, timeoutMs } = this.#worldTerms;
    const waitsFor = userCalls.watchCall(watch);
    return await crossLater(watch, { party, ...about, waitsFor, timeoutMs }, work);
  }
}

/** Returns the name of what an action uses, such as `tool set_lamp`. */
export function nameOf(action: Action): string {
  return action.type === "say" ? "what is said" : `tool ${action.name}`;
}
