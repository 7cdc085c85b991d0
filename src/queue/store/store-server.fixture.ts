import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";

const program = ["valkey-server", "redis-server"].find(
  (name) => spawnSync(name, ["--version"]).status === 0,
);

/** The reason why tests with a store are skipped; `undefined` if they run. */
export const missingStore =
  program === undefined
    ? "neither valkey-server nor redis-server is installed: `apt-get install valkey-server`"
    : undefined;

// Printed for readers of the tests' output.
if (missingStore !== undefined) console.warn(`SKIPPED: tests of the queue, ${missingStore}`);

/** A store of its own for a test. */
export interface StoreServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Ends the store as a crash would, and starts it again with its data or empty. */
  restart(options: { readonly keepsData: boolean }): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Starts a store on a free port. */
export async function startStore(flags: readonly string[] = []): Promise<StoreServer> {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-store-"));
  const port = await freePort();
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", dir, "--save", ""];
    const durable = ["--appendonly", "yes", "--appendfsync", "always"];
    child = spawn(program!, [...args, ...durable, ...flags], { stdio: "ignore" });
    await untilListening(port);
  };
  const stop = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  await start();
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    start,
    stop,
    async restart({ keepsData }) {
      await stop();
      if (!keepsData) await rm(path.join(dir, "appendonlydir"), { recursive: true, force: true });
      await start();
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** A port that no process listens on, below the system's range of free ports. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 18_000);
    const server = net.createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    await new Promise((resolve) => server.close(resolve));
    if (isFree) return port;
  }
}

async function untilListening(port: number): Promise<void> {
  for (;;) {
    const socket = net.connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    } finally {
      socket.destroy();
    }
  }
}

/** A way to a store that can be cut. */
export interface StoreProxy extends AsyncDisposable {
  readonly url: string;
  /** Ends all connections; new ones are refused until `mend()`. */
  cut(): void;
  /** Passes nothing on any more, without an error to either side, until `mend()`. */
  swallow(): void;
  mend(): void;
}

/** Starts a proxy in front of a store. */
export async function startProxy({ port }: Pick<StoreServer, "port">): Promise<StoreProxy> {
  const sockets = new Set<net.Socket>();
  let mode: "open" | "cut" | "swallow" = "open";
  const server = net.createServer((socket) => {
    if (mode === "cut") {
      socket.destroy();
      return;
    }
    const upstream = net.connect(port, "127.0.0.1");
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      sockets.add(from);
      from.on("data", (data) => {
        if (mode !== "swallow") to.write(data);
      });
      const end = (): void => {
        from.destroy();
        to.destroy();
        sockets.delete(from);
      };
      from.on("error", end);
      from.on("close", end);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port: own } = server.address() as net.AddressInfo;
  const cutAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `redis://127.0.0.1:${own}`,
    cut() {
      mode = "cut";
      cutAll();
    },
    swallow() {
      mode = "swallow";
    },
    mend() {
      // Swallowed bytes are lost, so the connection cannot continue.
      if (mode === "swallow") cutAll();
      mode = "open";
    },
    async [Symbol.asyncDispose]() {
      cutAll();
      server.close();
      await once(server, "close");
    },
  };
}
