import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("./server-main.js", import.meta.url));

/** Starts a server of the benchmark in a new process. Disposing it ends the process. */
export async function startSeedServer(
  scriptFile: string,
): Promise<AsyncDisposable & { readonly url: string }> {
  const child = spawn(process.execPath, [program, scriptFile], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = new Promise<void>((resolve) => void child.once("exit", () => resolve()));
  let output = "";
  for await (const text of child.stdout.setEncoding("utf8")) {
    output += text;
    if (output.includes("\n")) break;
  }
  const { url } = JSON.parse(output) as { url: string };
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
}
