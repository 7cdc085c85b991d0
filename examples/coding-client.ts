import { spawn } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/*
 * Plays several attempts at one task with a coding client through a running gateway:
 *
 *   node coding-client.mts TASK_ID PROMPT CHECK
 *
 * CHECK is a shell command. It runs in the attempt's folder, and its success is a reward of 1.
 */
const [taskId = "task", prompt = "", check = "true"] = process.argv.slice(2);
const { env } = process;
const gateway = env["TURNWRIGHT_URL"] ?? "http://127.0.0.1:8484";
const client = env["CLIENT"] ?? 'claude -p "$PROMPT" --allowedTools Bash,Edit,Write,Agent';
const count = Number(env["ATTEMPTS"] ?? 4);

interface Session {
  readonly sessionId: string;
  readonly token: string;
  readonly ownerToken: string;
}

/** Plays and scores one attempt. Only the client's folder and key differ between attempts. */
async function attempt(): Promise<void> {
  const { sessionId, token, ownerToken } = (await post("/sessions", { taskId })) as Session;
  const folder = await mkdtemp(path.join(tmpdir(), "attempt-"));
  const status = await run(client, folder, {
    PROMPT: prompt,
    HOME: await mkdtemp(path.join(tmpdir(), "home-")),
    ANTHROPIC_BASE_URL: gateway,
    ANTHROPIC_AUTH_TOKEN: token,
    ANTHROPIC_MODEL: "policy",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    OPENAI_BASE_URL: `${gateway}/v1`,
    OPENAI_API_KEY: token,
  });
  const end =
    status === 0
      ? { reward: (await run(check, folder)) === 0 ? 1 : 0 }
      : { failure: `the client ended with status ${status}` };
  const ended = await post(`/sessions/${sessionId}/finish`, end, ownerToken);
  const { rows, tree } = ended as { rows: number; tree: readonly { rejected?: string }[] };
  const rejected = tree.filter((turn) => turn.rejected !== undefined).length;
  console.log(JSON.stringify({ folder, ...end, turns: tree.length, rejected, rows }));
}

async function post(where: string, body: object, key?: string): Promise<unknown> {
  const response = await fetch(gateway + where, {
    method: "POST",
    body: JSON.stringify(body),
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
  });
  if (!response.ok) throw new Error(`${where}: ${await response.text()}`);
  return await response.json();
}

/** Runs a shell command without the secrets of this process. Resolves to its status. */
async function run(command: string, cwd: string, given: NodeJS.ProcessEnv = {}): Promise<number> {
  const child = spawn(command, {
    shell: true,
    cwd,
    env: { PATH: env["PATH"], ...given },
    stdio: ["ignore", "ignore", "inherit"],
  });
  return await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (status) => resolve(status ?? 1));
  });
}

await Promise.all(Array.from({ length: count }, attempt));
