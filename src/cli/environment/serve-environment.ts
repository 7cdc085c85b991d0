import { environmentOf, type EnvironmentFlags } from "./environment-flags.ts";
import { loadEnvironment, loadOwnUser } from "../../composition/environment/environments.ts";
import { serveOpenEnv } from "../../worlds/open-env/serve-open-env.ts";
import { stopOnInterrupt } from "../interrupt.ts";
import { writeError, writeOut } from "../write-out.ts";

/** Flags of `turnwright env serve`. */
export interface ServeFlags extends EnvironmentFlags {
  readonly port?: number;
  readonly host?: string;
  readonly maxSessions?: number;
}

/** Serves an environment by its name or module as OpenEnv, until Ctrl-C or SIGTERM. */
export async function serveEnvironment(
  name: string,
  { data, envArgs, python, ...options }: ServeFlags,
): Promise<void> {
  const config = environmentOf(name, { data, envArgs, python });
  const environment = await loadEnvironment(config);
  const user = await loadOwnUser(config);
  await using server = await serveOpenEnv(environment, { ...options, ...(user && { user }) });
  await writeOut(`${JSON.stringify({ url: server.url })}\n`);
  writeError(`${environment.name} can be played by any OpenEnv client. Ctrl-C ends it.\n`);
  const signal = stopOnInterrupt("ending: open sessions are aborted");
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
