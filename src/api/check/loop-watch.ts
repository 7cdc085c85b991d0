import { url as inspectorUrl, type Session } from "node:inspector";
import type { writeSync } from "node:fs";
import { isMainThread, Worker } from "node:worker_threads";
import { placeOfStack } from "../../text/source-place.ts";

/** The interval between beats, in milliseconds. */
const beatMs = 100;

/** The time that a call has to notice that its code was ended, in milliseconds. */
const pendingLimitMs = 5_000;

/** The longest description of a stack, in bytes. */
const stackBytes = 65_536;

/** The longest description of a call, in bytes. */
const callBytes = 1_000;

/** The bytes of the three counts before the texts. */
const countBytes = 12;

/** Options of `LoopWatch.start()`. */
interface LoopWatchOptions {
  /** The time for which code may run without giving back control, in milliseconds. */
  readonly limitMs: number;
  /** Called at the end of the process if a loop was ended and the watch was not disposed of. `call` may be empty. */
  readonly onLost: (place: string, call: string) => void;
}

/**
 * Ends code of the main thread that runs without end, such as `for (;;) {}`, which no timer of that thread can do. The
 * main thread sends beats. If none arrives for `limitMs`, another thread reads the place of the running code and ends
 * it. Promises that wait for the code never settle, so each call must have a time limit, which then expires.
 */
export class LoopWatch implements Disposable {
  /**
   * Memory of both threads: three counts (see `#counts`), then two texts, which are a description of the latest call and
   * the stack of the code that was ended.
   */
  readonly #shared = new SharedArrayBuffer(countBytes + callBytes + stackBytes);
  /** The number of beats, the length of the stack, and the length of the call's description. */
  readonly #counts = new Int32Array(this.#shared, 0, 3);
  readonly #timer: NodeJS.Timeout;
  readonly #thread: Worker;
  readonly #onExit: () => void;

  private constructor({ limitMs, onLost }: LoopWatchOptions) {
    let pendingMs = 0;
    this.#timer = setInterval(() => {
      this.beat();
      // The process lives on for the time limit of the call. If nothing waits for one, it ends.
      pendingMs = Atomics.load(this.#counts, 1) === 0 ? 0 : pendingMs + beatMs;
      if (pendingMs >= pendingLimitMs) this.#timer.unref();
    }, beatMs);
    // The code is passed as text, so that it runs the same from the sources and from the build.
    this.#thread = new Worker(
      `(${watchBeats.toString()})(require, require("node:worker_threads").workerData);`,
      {
        eval: true,
        workerData: { shared: this.#shared, countBytes, callBytes, limitMs, beatMs },
      },
    );
    this.#thread.unref();
    this.#onExit = () => {
      const place = this.takePlace();
      const call = Buffer.from(this.#shared, countBytes, Atomics.load(this.#counts, 2)).toString();
      if (place !== undefined) onLost(place, call);
    };
    process.once("exit", this.#onExit);
  }

  /** Starts a watch. Returns `undefined` in another thread than the main one, and under a debugger. */
  static start(options: LoopWatchOptions): LoopWatch | undefined {
    return isMainThread && inspectorUrl() === undefined ? new LoopWatch(options) : undefined;
  }

  /** Records that the code still gives back control. */
  beat(): void {
    Atomics.add(this.#counts, 0, 1);
  }

  /** Records a beat, and the description of the call that begins. */
  note(call: string): void {
    this.beat();
    const length = Buffer.from(this.#shared, countBytes, callBytes).write(call);
    Atomics.store(this.#counts, 2, length);
  }

  /** Returns the place of the code that was ended since the last call, such as `desk.js:12`. `undefined` if none was. */
  takePlace(): string | undefined {
    const length = Atomics.exchange(this.#counts, 1, 0);
    if (length === 0) return undefined;
    const stack = Buffer.from(this.#shared, countBytes + callBytes, length).toString();
    return placeOfStack(stack) ?? "an unknown place";
  }

  /** Lets the process end if only the watch is left, as where no call with a time limit waits. */
  unref(): void {
    this.#timer.unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    process.off("exit", this.#onExit);
    void this.#thread.terminate();
  }
}

interface WatchedBeats {
  readonly shared: SharedArrayBuffer;
  readonly countBytes: number;
  readonly callBytes: number;
  readonly limitMs: number;
  readonly beatMs: number;
}

interface PausedFrame {
  readonly callFrameId: string;
  readonly functionName: string;
  readonly location: { readonly scriptId: string; readonly lineNumber: number };
}

/** Runs in the other thread. Counts its own rounds, so that a machine that sleeps ends nothing. */
function watchBeats(load: (name: string) => unknown, watched: WatchedBeats): void {
  const { shared, limitMs, beatMs: everyMs } = watched;
  const counts = new Int32Array(shared, 0, 3);
  const stackStart = watched.countBytes + watched.callBytes;
  const inspector = load("node:inspector") as { readonly Session: typeof Session };
  const files = load("node:fs") as { readonly writeSync: typeof writeSync };
  let last = -1;
  let missedMs = 0;
  let isEnding = false;
  setInterval(() => {
    const beats = Atomics.load(counts, 0);
    missedMs = beats === last ? missedMs + everyMs : 0;
    last = beats;
    if (missedMs < limitMs) isEnding = false;
    else if (!isEnding) {
      isEnding = true;
      endLoop();
    } else if (missedMs >= limitMs + 10_000) {
      const call = Buffer.from(shared, watched.countBytes, Atomics.load(counts, 2)).toString();
      const text = `turnwright: Cannot go on: ${call} blocks the process and cannot be interrupted, expected an answer\n`;
      files.writeSync(2, text);
      process.kill(process.pid, "SIGKILL");
    }
  }, everyMs);

  function endLoop(): void {
    const session = new inspector.Session();
    session.connectToMainThread();
    const scripts = new Map<string, string>();
    session.on("Debugger.scriptParsed", ({ params: { scriptId, url } }) => {
      scripts.set(scriptId, url);
    });
    session.once("Debugger.paused", ({ params }) => {
      const frames = params.callFrames as readonly PausedFrame[];
      const lines = frames.map(({ functionName, location: { scriptId, lineNumber } }) => {
        return `    at ${functionName || "<anonymous>"} (${scripts.get(scriptId)}:${lineNumber + 1}:1)`;
      });
      const stack = Buffer.from(lines.join("\n")).subarray(0, shared.byteLength - stackStart);
      new Uint8Array(shared, stackStart).set(stack);
      Atomics.store(counts, 1, stack.length);
      // The check sets another status if it goes on.
      const evaluated = { callFrameId: frames[0]!.callFrameId, expression: "process.exitCode = 1" };
      session.post("Debugger.evaluateOnCallFrame", evaluated, () => {
        session.post("Runtime.terminateExecution");
        session.post("Debugger.disable", () => session.disconnect());
      });
    });
    session.post("Debugger.enable", () => session.post("Debugger.pause"));
  }
}
