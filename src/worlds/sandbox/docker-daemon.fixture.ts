import { execFileSync, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { realpathSync } from "node:fs";
import path from "node:path";

/** The programs that the tests run in a container. */
const programs = "sh sleep cat mkdir dirname yes head ls grep echo true tail setsid".split(" ");

/** A Docker daemon, and an image on it that no other program uses. */
export interface DockerDaemon {
  readonly image: string;
  /** Containers of the image, also those that have ended. */
  count(): number;
  /** Removes image and containers. */
  remove(): void;
}

/** The daemon of this machine; or why the tests that want one are skipped, which is printed as well. */
export function findDockerDaemon(): DockerDaemon | string {
  const found = spawnSync("docker", ["version", "--format", "{{.Server.Os}}"], { timeout: 20_000 });
  if (found.error !== undefined) return skipped(`docker cannot be run: ${found.error.message}`);
  if (found.status !== 0) return skipped(String(found.stderr).trim().split("\n").at(-1) ?? "");
  const os = String(found.stdout).trim();
  if (os !== process.platform) return skipped(`its containers are ${os}'s`);
  const image = `turnwright-test-${randomUUID()}`;
  try {
    importImage(image);
  } catch (error) {
    return skipped(`no image can be made of this machine's programs: ${String(error)}`);
  }
  const containers = (): readonly string[] =>
    String(execFileSync("docker", ["ps", "--all", "--quiet", "--filter", `ancestor=${image}`]))
      .split("\n")
      .filter((line) => line !== "");
  return {
    image,
    count: () => containers().length,
    remove: () => {
      const ids = containers();
      if (ids.length > 0) execFileSync("docker", ["rm", "--force", ...ids]);
      execFileSync("docker", ["rmi", "--force", image]);
    },
  };
}

/** An image of this machine's own programs, so that none has to be downloaded. */
function importImage(image: string): void {
  const files = new Set(programs.flatMap((name) => programFiles(name)));
  const packed = ["--create", "--dereference", "--file=-", "--directory=/", ...files];
  const input = execFileSync("tar", packed, { maxBuffer: 2 ** 28 });
  execFileSync("docker", ["import", "--change", "ENV PATH=/usr/bin:/bin", "-", image], { input });
}

/** A program's file and the libraries that it is linked with, seen from the root. */
function programFiles(name: string): readonly string[] {
  const file = String(execFileSync("sh", ["-c", 'command -v -- "$1"', "sh", name])).trim();
  // Some programs are built into the shell, which then prints only their name.
  const program = path.isAbsolute(file) ? file : `/bin/${name}`;
  const linked = String(spawnSync("ldd", [realpathSync(program)]).stdout).match(/\/\S+/g) ?? [];
  return [program, ...linked.map((text) => text.replace(/:$/, ""))].map((text) => text.slice(1));
}

function skipped(why: string): string {
  console.warn(`SKIPPED: tests of sandboxes with a Docker daemon: ${why}`);
  return why;
}
