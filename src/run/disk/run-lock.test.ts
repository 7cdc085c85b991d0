import { mkdtemp, readFile, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { Crash, type FileCall, crashingFiles, faultyFiles } from "../faulty-files.fixture.ts";
import { type Files, type OpenMode, diskFiles } from "./files.ts";
import { fakeMachine } from "../machine.fixture.ts";
import { type ProcessPlace, isSameMachine, thisMachine } from "./process-place.ts";
import { type LockOptions } from "./lock-options.ts";
import { RunLock } from "./run-lock.ts";
import { commandLine } from "./command-line.ts";

let dir = "";
let file = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-lock-"));
  file = path.join(dir, "run.lock");
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const startedAtMs = Date.parse("2026-01-02T03:04:05.000Z");
const noWait = { sleep: () => Promise.reject(new Error("no wait is expected")) };

function options(here: Partial<ProcessPlace>, more: LockOptions = {}): LockOptions {
  return {
    machine: fakeMachine(here),
    now: () => startedAtMs,
    command: "turnwright rollout",
    ...noWait,
    ...more,
  };
}

const elsewhere = { pid: 7, host: "two", bootId: "boot-2" };
const further = { pid: 9, host: "three", bootId: "boot-3" };

/** A lock with a holder that does not release it. */
async function abandon(here: Partial<ProcessPlace>): Promise<void> {
  const lock = await RunLock.take(dir, options(here));
  const text = await readFile(file, "utf8");
  await lock[Symbol.asyncDispose]();
  await writeFile(file, text);
}

/** A file system's clock ticks more coarsely than the process's, so it is some milliseconds late. */
const tickMs = 500;

/** Sets the lock's time so far in the past, or a little further. */
async function lastSeen(agoMs: number, seen = file): Promise<void> {
  const at = new Date(Date.now() - agoMs - tickMs);
  await utimes(seen, at, at);
}

async function holderPid(): Promise<unknown> {
  return (JSON.parse(await readFile(file, "utf8")) as { pid: number }).pid;
}

describe("RunLock", () => {
  test("names its holder, and is gone after it is released", async () => {
    {
      await using _lock = await RunLock.take(dir, options({ pid: 7 }));
      expect(JSON.parse(await readFile(file, "utf8"))).toEqual({
        format: 1,
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        since: "2026-01-02T03:04:05.000Z",
        command: "turnwright rollout",
        pid: 7,
        host: "one",
        bootId: "boot-1",
        pidNamespace: "pid:1",
      });
      expect(await readdir(dir)).toEqual(["run.lock"]);
    }
    expect(await readdir(dir)).toEqual([]);
  });

  test("refuses a second process, and names the first", async () => {
    await using _lock = await RunLock.take(dir, options({ pid: 7 }));
    const second = RunLock.take(
      dir,
      options({ pid: 8 }, { machine: fakeMachine({ pid: 8 }, [7]) }),
    );
    await expect(second).rejects.toThrow(
      `Cannot use ${dir}: process 7 on one since 2026-01-02T03:04:05.000Z (turnwright rollout) is ` +
        `writing there; wait for it or stop it, or choose another --out (if it is certainly not a run, ` +
        `remove ${file})`,
    );
    expect(await readdir(dir)).toEqual(["run.lock"]);
  });

  test("refuses the same process a second time", async () => {
    await using _lock = await RunLock.take(dir);
    await expect(RunLock.take(dir)).rejects.toThrow(`process ${process.pid} on`);
  });

  test("takes over from a dead process of this machine at once", async () => {
    await abandon({ pid: 7 });
    await using _lock = await RunLock.take(dir, options({ pid: 8 }));
    expect(await holderPid()).toBe(8);
    expect(await readdir(dir)).toEqual(["run.lock"]);
  });

  test.each([
    ["another host", { pid: 7, host: "two", bootId: "boot-2" }],
    ["the time before a reboot", { pid: 8, bootId: "boot-0" }],
    ["another container", { pid: 8, pidNamespace: "pid:2" }],
  ])("takes over from %s once the lease is over", async (_what, holder) => {
    await abandon(holder);
    await lastSeen(120_000);
    await using _lock = await RunLock.take(dir, options({ pid: 8 }));
    expect(await holderPid()).toBe(8);
  });

  test("waits for a holder on another host, and takes over without a heartbeat", async () => {
    await abandon({ pid: 7, host: "two", bootId: "boot-2" });
    await lastSeen(100_000);
    const reported: string[] = [];
    let slept = 0;
    const sleep = async (): Promise<void> => {
      slept++;
      await lastSeen(100_000 + slept * 11_000);
    };
    await using _lock = await RunLock.take(
      dir,
      options({ pid: 8 }, { sleep, onWait: (why) => reported.push(why) }),
    );
    // Files age here because their dates are set back, which is not a heartbeat.
    expect({ slept, reported }).toEqual({
      slept: 2,
      reported: [
        `${dir} is locked by process 7 on two since 2026-01-02T03:04:05.000Z (turnwright rollout): ` +
          "waiting until it gives a sign of life or has given none for 120 s",
      ],
    });
  });

  test("refuses as soon as a holder on another host writes a heartbeat", async () => {
    await using holder = await RunLock.take(
      dir,
      options({ pid: 7, host: "two", bootId: "boot-2" }),
    );
    await lastSeen(60_000);
    let slept = 0;
    const sleep = async (): Promise<void> => {
      if (++slept === 3) await holder.renew();
    };
    await expect(RunLock.take(dir, options({ pid: 8 }, { sleep }))).rejects.toThrow(
      "process 7 on two",
    );
    expect(slept).toBe(3);
  });

  test("stops waiting when it is interrupted", async () => {
    await abandon({ pid: 7, host: "two", bootId: "boot-2" });
    const controller = new AbortController();
    const { sleep: _none, ...waiting } = options({ pid: 8 }, { signal: controller.signal });
    const onWait = () => controller.abort(new Error("enough"));
    await expect(RunLock.take(dir, { ...waiting, onWait })).rejects.toThrow("enough");
    expect(await readdir(dir)).toEqual(["run.lock"]);
  });

  describe("without a boot id", () => {
    /** A machine without a boot id; other machines may have the same name. */
    function nameOnly(
      pid: number,
      running: readonly number[] = [],
      bootedAtMs?: number,
    ): LockOptions {
      return options(
        {},
        {
          machine: {
            here: async () => {
              const start = bootedAtMs === undefined ? {} : { bootedAtMs };
              return await Promise.resolve({ pid, host: "mac.local", ...start });
            },
            isRunning: async (place) =>
              await Promise.resolve(place.pid === pid || running.includes(place.pid)),
          },
        },
      );
    }

    async function abandonNameOnly(bootedAtMs?: number): Promise<void> {
      const lock = await RunLock.take(dir, nameOnly(7, [], bootedAtMs));
      const text = await readFile(file, "utf8");
      await lock[Symbol.asyncDispose]();
      await writeFile(file, text);
    }

    test("takes over after the lease, even if another process has the dead one's pid", async () => {
      await abandonNameOnly();
      await lastSeen(120_000);
      await using _lock = await RunLock.take(dir, nameOnly(8, [7]));
      expect(await holderPid()).toBe(8);
    });

    test("takes over at once from a dead holder of the same start of the machine", async () => {
      await abandonNameOnly(1_000_000);
      await using _lock = await RunLock.take(dir, nameOnly(8, [], 1_004_000));
      expect(await holderPid()).toBe(8);
    });

    test("waits if a machine of the same name was started at another time", async () => {
      await abandonNameOnly(1_000_000);
      const sleep = async (): Promise<void> => await lastSeen(120_000);
      const reported: string[] = [];
      const waiting = { sleep, onWait: (why: string) => reported.push(why) };
      await using _lock = await RunLock.take(dir, { ...nameOnly(8, [], 1_006_000), ...waiting });
      expect(reported).toHaveLength(1);
      expect(await holderPid()).toBe(8);
    });

    test("does not take over from a machine of the same name that gives signs of life", async () => {
      await using first = await RunLock.take(dir, nameOnly(7));
      await lastSeen(60_000);
      const reported: string[] = [];
      const sleep = async (): Promise<void> => await first.renew();
      const second = RunLock.take(dir, {
        ...nameOnly(8),
        sleep,
        onWait: (why) => reported.push(why),
      });
      await expect(second).rejects.toThrow("process 7 on mac.local");
      expect(reported).toEqual([
        `${dir} is locked by process 7 on mac.local since 2026-01-02T03:04:05.000Z (turnwright rollout): ` +
          "waiting until it gives a sign of life or has given none for 120 s",
      ]);
      await first.confirm();
    });

    test("refuses at once if the holder runs and wrote a heartbeat", async () => {
      await using _first = await RunLock.take(dir, nameOnly(7));
      await expect(RunLock.take(dir, nameOnly(8, [7]))).rejects.toThrow("process 7 on mac.local");
    });
  });

  test.each(["", '{"format":1,"id":"a', "something else"])(
    "waits for an unreadable file (%j) until it is old",
    async (text) => {
      await writeFile(file, text);
      const sleep = async (): Promise<void> => await lastSeen(120_000);
      await using _lock = await RunLock.take(dir, options({ pid: 8 }, { sleep }));
      expect(await holderPid()).toBe(8);
    },
  );

  test("of many processes that find a dead holder at once, one takes over", async () => {
    for (let round = 0; round < 10; round++) {
      await abandon({ pid: 999 });
      const pids = [1, 2, 3, 4, 5, 6, 7, 8];
      const results = await Promise.allSettled(
        pids.map((pid) => RunLock.take(dir, options({}, { machine: fakeMachine({ pid }, pids) }))),
      );
      const taken = results.filter(({ status }) => status === "fulfilled");
      expect(taken).toHaveLength(1);
      for (const result of results) {
        if (result.status === "fulfilled") await result.value[Symbol.asyncDispose]();
        else expect(String(result.reason)).toContain("is writing there");
      }
      expect(await readdir(dir)).toEqual([]);
    }
  });

  test("a process that judged the dead holder before another took over does not take that one's lock", async () => {
    await abandon({ pid: 999 });
    let winner: RunLock | undefined;
    const machine = fakeMachine({ pid: 2 }, [1]);
    // While the slow one asks whether 999 runs, a quick one takes over from it.
    const isRunning = async (place: ProcessPlace): Promise<boolean> => {
      if (place.pid !== 999) return await machine.isRunning(place);
      winner ??= await RunLock.take(dir, options({}, { machine: fakeMachine({ pid: 1 }, [2]) }));
      return false;
    };
    const slow = RunLock.take(dir, options({}, { machine: { ...machine, isRunning } }));
    await expect(slow).rejects.toThrow("process 1 on one");
    expect(await holderPid()).toBe(1);
    await winner?.confirm();
    await winner?.[Symbol.asyncDispose]();
    expect(await readdir(dir)).toEqual([]);
  });

  /** Files of a process that stands still before it opens the lock in this way; then something happens. */
  function pausingFiles(pause: (mode: OpenMode) => Promise<void>): Files {
    return {
      ...diskFiles,
      open: async (name, mode) => {
        if (name === file) await pause(mode);
        return await diskFiles.open(name, mode);
      },
    };
  }

  test("a new holder is not judged by the age of the one before", async () => {
    await abandon(elsewhere);
    await lastSeen(120_000);
    let winner: RunLock | undefined;
    const files = pausingFiles(async () => {
      winner ??= await RunLock.take(dir, options(further));
    });
    const sleep = async (): Promise<void> => await winner!.renew();
    await expect(RunLock.take(dir, options({ pid: 8 }, { files, sleep }))).rejects.toThrow(
      "process 9 on three",
    );
    await winner!.confirm();
    expect(await holderPid()).toBe(9);
    await winner![Symbol.asyncDispose]();
  });

  test("does not take a lock that another process has by the time it is opened", async () => {
    let winner: RunLock | undefined;
    const files = pausingFiles(async (mode) => {
      if (mode !== "update" || winner !== undefined) return;
      await lastSeen(120_000);
      winner = await RunLock.take(dir, options(further));
    });
    await expect(RunLock.take(dir, options(elsewhere, { files }))).rejects.toThrow(
      `Cannot use ${dir}: another process took it over while this one stood still; wait for it or ` +
        "stop it, then start again",
    );
    expect(await holderPid()).toBe(9);
    await winner![Symbol.asyncDispose]();
  });

  test("a crash at any moment of a takeover leaves a lock that the next one can take", async () => {
    let hasEnded = false;
    for (let at = 0; !hasEnded; at++) {
      await abandon({ pid: 999 });
      const { files } = crashingFiles(at);
      try {
        const lock = await RunLock.take(dir, options({ pid: 3 }, { files }));
        await lock[Symbol.asyncDispose]();
        hasEnded = true;
      } catch (error) {
        expect(error instanceof Crash || (error as { code?: string }).code === "crash").toBe(true);
      }
      // A torn draft names no process: it is removed once it is old.
      const drafts = (await readdir(dir)).filter((name) => name.endsWith(".draft"));
      for (const name of drafts) await lastSeen(120_000, path.join(dir, name));
      const lock = await RunLock.take(dir, options({ pid: 4 }));
      expect(await holderPid()).toBe(4);
      await lock[Symbol.asyncDispose]();
      expect(await readdir(dir)).toEqual([]);
      expect(at).toBeLessThan(100);
    }
  });

  test("works without hard links", async () => {
    const files = faultyFiles(({ operation }) =>
      operation === "link" ? { type: "fail", code: "EPERM" } : undefined,
    );
    await abandon({ pid: 999 });
    {
      await using lock = await RunLock.take(dir, options({ pid: 3 }, { files }));
      await lock.renew();
      await lock.confirm();
      const machine = fakeMachine({ pid: 4 }, [3]);
      await expect(RunLock.take(dir, options({}, { files, machine }))).rejects.toThrow("process 3");
    }
    expect(await readdir(dir)).toEqual([]);
  });

  /** Files in which the first call of this kind fails. */
  function failOnce(isMeant: (call: FileCall) => boolean, isLinkless = false): Files {
    let hasFailed = false;
    return faultyFiles((call) => {
      if (isLinkless && call.operation === "link") return { type: "fail", code: "EPERM" };
      if (hasFailed || !isMeant(call)) return undefined;
      hasFailed = true;
      return { type: "fail", code: "EIO" };
    });
  }

  test.each<[string, (call: FileCall) => boolean, boolean?]>([
    ["the lock is opened", ({ operation, path: name }) => operation === "open" && name === file],
    ["the lock is read", ({ operation, path: name }) => operation === "read" && name === file],
    ["the folder is listed", ({ operation }) => operation === "list"],
    [
      "its draft is removed",
      ({ operation, path: name }) => operation === "remove" && name.endsWith(".draft"),
    ],
    [
      "the right to take over is given back",
      ({ operation, path: name }) => operation === "remove" && /run\.lock\.[^.]+$/.test(name),
    ],
    [
      "it is written where there are no hard links",
      ({ operation, path: name }) => operation === "write" && name === file,
      true,
    ],
    [
      "it is synced where there are no hard links",
      ({ operation, path: name }) => operation === "sync" && name === file,
      true,
    ],
  ])("leaves no file if the disk fails as %s", async (what, isMeant, isLinkless) => {
    // Only a dead holder's is taken over.
    if (what.startsWith("the right")) await abandon({ pid: 999 });
    const files = failOnce(isMeant, isLinkless);
    await expect(RunLock.take(dir, options({ pid: 7 }, { files }))).rejects.toThrow("EIO");
    expect(await readdir(dir)).toEqual([]);
    // The next holder may be the same process.
    await using _next = await RunLock.take(dir, options({ pid: 7 }));
    expect(await holderPid()).toBe(7);
  });

  test("reports in one line that the folder cannot be written", async () => {
    const files = faultyFiles(({ operation }) =>
      operation === "open" ? { type: "fail", code: "EROFS" } : undefined,
    );
    await expect(RunLock.take(dir, options({}, { files }))).rejects.toThrow(
      `Cannot write ${file}: EROFS: read-only file system, open; make the file system writable, or choose another --out`,
    );
  });
});

describe("RunLock.confirm()", () => {
  test("asks the disk for the lock's owner each time", async () => {
    await using lock = await RunLock.take(dir, options({}));
    await lock.confirm();
    await rm(file);
    await expect(lock.confirm()).rejects.toThrow(
      `Cannot continue writing ${dir}: the folder was moved or deleted`,
    );
  });

  test("refuses after another process took over, even if the clock stood still", async () => {
    const sleeper = await RunLock.take(dir, options(elsewhere));
    await lastSeen(120_000);
    await using other = await RunLock.take(dir, options({ pid: 8 }));
    await expect(sleeper.confirm()).rejects.toThrow(
      "another process took the run over while this one stood still",
    );
    await sleeper[Symbol.asyncDispose]();
    expect(await holderPid()).toBe(8);
    await other.confirm();
  });

  test("writes a heartbeat when the last one is half the lease old", async () => {
    let nowMs = startedAtMs;
    await using lock = await RunLock.take(dir, options({}, { now: () => nowMs }));
    await lastSeen(60_000);
    const before = (await diskFiles.facts(file))!.writtenAtMs;
    nowMs += 59_999;
    await lock.confirm();
    expect((await diskFiles.facts(file))!.writtenAtMs).toBe(before);
    nowMs += 1;
    await lock.confirm();
    expect((await diskFiles.facts(file))!.writtenAtMs).toBeGreaterThan(before + 30_000);
  });

  test("uses the last heartbeat if the disk does not answer", async () => {
    let nowMs = startedAtMs;
    let isBroken = false;
    const files = faultyFiles(({ operation }) =>
      isBroken && operation === "facts" ? { type: "fail", code: "EIO" } : undefined,
    );
    await using lock = await RunLock.take(dir, options({}, { now: () => nowMs, files }));
    isBroken = true;
    await lock.confirm();
    nowMs += 120_000;
    await expect(lock.confirm()).rejects.toThrow(`Cannot write ${file}: EIO`);
    isBroken = false;
    await lock.confirm();
  });

  test("refuses after another process took over, and keeps that lock", async () => {
    let nowMs = startedAtMs;
    const sleeper = await RunLock.take(
      dir,
      options({ pid: 7, host: "two", bootId: "boot-2" }, { now: () => nowMs }),
    );
    await lastSeen(120_000);
    await using other = await RunLock.take(dir, options({ pid: 8 }));
    nowMs += 120_000;
    await expect(sleeper.confirm()).rejects.toThrow(
      "another process took the run over while this one stood still",
    );
    await sleeper[Symbol.asyncDispose]();
    expect(await holderPid()).toBe(8);
    await other.confirm();
  });

  test("is released even if the clock was set forward while nothing was written", async () => {
    let nowMs = startedAtMs;
    {
      await using _lock = await RunLock.take(dir, options({ pid: 7 }, { now: () => nowMs }));
      nowMs += 180_000;
    }
    expect(await readdir(dir)).toEqual([]);
    // The same process may use the folder again.
    await using _again = await RunLock.take(dir, options({ pid: 7 }));
  });

  test("does not confirm a lock that was released", async () => {
    const lock = await RunLock.take(dir, options({}));
    await lock.confirm();
    await lock[Symbol.asyncDispose]();
    await expect(lock.confirm()).rejects.toThrow(
      `Cannot continue writing ${dir}: it was closed while its run plays`,
    );
  });

  test("counts a sign of life from before it was given", async () => {
    let nowMs = startedAtMs;
    let other: RunLock | undefined;
    const files = faultyFiles(() => undefined);
    const sleeper = await RunLock.take(
      dir,
      options(elsewhere, {
        now: () => nowMs,
        files: {
          ...files,
          open: async (name, mode) => {
            const open = await files.open(name, mode);
            return {
              ...open,
              sync: async () => {
                await open.sync();
                if (nowMs === startedAtMs || other !== undefined) return;
                // The process stands still right after its heartbeat.
                nowMs += 200_000;
                await lastSeen(120_000);
                other = await RunLock.take(dir, options({ pid: 8 }));
              },
            };
          },
        },
      }),
    );
    nowMs += 10_000;
    await sleeper.renew();
    await expect(sleeper.confirm()).rejects.toThrow(
      "another process took the run over while this one stood still",
    );
    await sleeper[Symbol.asyncDispose]();
    await other![Symbol.asyncDispose]();
  });

  test("bears a failing sign of life until the lease is over", async () => {
    let nowMs = startedAtMs;
    let isBroken = false;
    const files = faultyFiles(({ operation }) =>
      isBroken && operation === "write" ? { type: "fail", code: "EIO" } : undefined,
    );
    await using lock = await RunLock.take(dir, options({}, { now: () => nowMs, files }));
    isBroken = true;
    nowMs += 60_000;
    await lock.confirm();
    nowMs += 60_000;
    await expect(lock.confirm()).rejects.toThrow(`Cannot write ${file}: EIO`);
    isBroken = false;
    await lock.confirm();
  });

  test("writes another heartbeat if the last one started before the file server stood still", async () => {
    let nowMs = startedAtMs;
    let stall = Promise.resolve();
    const back = withResolvers();
    const files = faultyFiles(() => undefined);
    const open: typeof files.open = async (name, mode) => {
      const opened = await files.open(name, mode);
      const write: typeof opened.write = async (...call) => {
        await stall;
        return await opened.write(...call);
      };
      return { ...opened, write };
    };
    const slow = { ...files, open };
    await using lock = await RunLock.take(dir, options({}, { now: () => nowMs, files: slow }));
    stall = back.promise;
    const sign = lock.renew();
    nowMs += 180_000;
    const confirmed = lock.confirm();
    back.resolve();
    await sign;
    await expect(confirmed).resolves.toBeUndefined();
  });

  test("reports that the disk stood still if each heartbeat takes as long as the lease", async () => {
    let nowMs = startedAtMs;
    const files = faultyFiles(({ operation }) => {
      if (operation === "write" && nowMs > startedAtMs) nowMs += 130_000;
      return undefined;
    });
    await using lock = await RunLock.take(dir, options({}, { now: () => nowMs, files }));
    nowMs += 130_000;
    await expect(lock.confirm()).rejects.toThrow(
      `Cannot continue writing ${dir}: its disk takes longer than 120 s for a sign of life`,
    );
  });

  test("writes heartbeats that other processes see", async () => {
    await using lock = await RunLock.take(dir, options({}));
    await lastSeen(60_000);
    const before = (await diskFiles.facts(file))!.writtenAtMs;
    await lock.renew();
    expect((await diskFiles.facts(file))!.writtenAtMs).toBeGreaterThan(before + 30_000);
  });

  test.each(["facts", "remove"] as const)(
    "stays if the disk refuses %s, and the error of the run is reported",
    async (refused) => {
      let isBroken = false;
      const files = faultyFiles(({ operation, path: name }) =>
        isBroken && operation === refused && name === file
          ? { type: "fail", code: "EIO" }
          : undefined,
      );
      const here = { pid: 7 };
      const play = async (): Promise<void> => {
        await using _lock = await RunLock.take(dir, options(here, { files }));
        isBroken = true;
        throw new UsageError("the disk refuses an episode");
      };
      await expect(play()).rejects.toThrow(new UsageError("the disk refuses an episode"));
      expect(await holderPid()).toBe(7);
      // Its holder is gone.
      await using _next = await RunLock.take(dir, options({ pid: 8 }));
      expect(await holderPid()).toBe(8);
    },
  );

  test("notices that the folder was moved", async () => {
    const lock = await RunLock.take(dir, options({}));
    await rename(dir, `${dir}-moved`);
    await lock.renew();
    await expect(lock.confirm()).rejects.toThrow("moved or deleted");
    await lock[Symbol.asyncDispose]();
    await rename(`${dir}-moved`, dir);
  });
});

describe("thisMachine", () => {
  test("knows itself as running, and neither a free pid nor a pid that another process got", async () => {
    const here = await thisMachine.here();
    expect(here.pid).toBe(process.pid);
    expect(isSameMachine(here, here)).toBe(true);
    expect(await thisMachine.isRunning(here)).toBe(true);
    expect(await thisMachine.isRunning({ ...here, pid: 2 ** 22 + 1 })).toBe(false);
    if (here.processStart === undefined) return;
    expect(await thisMachine.isRunning({ ...here, processStart: "1" })).toBe(false);
  });
});

describe("isSameMachine()", () => {
  const here = { pid: 1, host: "one", bootId: "b", pidNamespace: "n" };
  test.each([
    [{}, true],
    [{ host: "renamed" }, true],
    [{ bootId: "c" }, false],
    [{ pidNamespace: "m" }, false],
  ])("%j: %s", (other, expected) => {
    expect(isSameMachine(here, { ...here, ...other })).toBe(expected);
  });

  test("uses the host's name on systems without a boot id", () => {
    expect(isSameMachine({ pid: 1, host: "a" }, { pid: 2, host: "a" })).toBe(true);
    expect(isSameMachine({ pid: 1, host: "a" }, { pid: 2, host: "b" })).toBe(false);
  });
});

test("commandLine() removes the keys in addresses, at any place", () => {
  const url = "https://host:30000/v1?region=eu&api_key=a%20b&token=0123456789";
  expect(commandLine(["node", "/x/train.mjs", "--url", url, `--user-url=${url}`])).toBe(
    "train.mjs --url https://host:30000/v1?region=eu&api_key=[redacted]&token=[redacted] " +
      "--user-url=https://host:30000/v1?region=eu&api_key=[redacted]&token=[redacted]",
  );
});

test("commandLine() leaves out the interpreter and passwords", () => {
  expect(
    commandLine([
      "/usr/bin/node",
      "/x/turnwright.js",
      "rollout",
      "--url",
      "http://me:secret@host/",
    ]),
  ).toBe("turnwright rollout --url http://…@host/");
});
