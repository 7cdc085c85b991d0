import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { hideEverywhere } from "../secrets/redactor.ts";

/** Environment variables, as the hub's own library reads them. */
export type HubVariables = Readonly<Record<string, string | undefined>>;

/** Where models are kept and fetched from. */
export interface HubPlace {
  /** The hub's cache: a folder `models--OWNER--NAME` for each model. */
  readonly cacheDir: string;
  /** Such as `https://huggingface.co`. */
  readonly endpoint: string;
  /** Nothing is fetched; what is in the cache is all there is. */
  readonly isOffline: boolean;
}

/**
 * Reads where the hub is, by its own variables: `HF_HUB_CACHE`, `HF_HOME`, `XDG_CACHE_HOME`,
 * `HF_ENDPOINT`, `HF_HUB_OFFLINE`, `TRANSFORMERS_OFFLINE`.
 *
 * **Source:** huggingface/huggingface_hub, `src/huggingface_hub/constants.py`.
 */
export function readHubPlace(env: HubVariables): HubPlace {
  hideEverywhere({ urls: addressVariables.flatMap((name) => set(env[name]) ?? []) });
  return {
    cacheDir: fromHome(
      set(env["HF_HUB_CACHE"]) ??
        set(env["HUGGINGFACE_HUB_CACHE"]) ??
        path.join(homeOf(env), "hub"),
    ),
    endpoint: (set(env["HF_ENDPOINT"]) ?? "https://huggingface.co").replace(/\/+$/, ""),
    isOffline: ["1", "on", "yes", "true"].includes(
      (set(env["HF_HUB_OFFLINE"]) ?? env["TRANSFORMERS_OFFLINE"] ?? "").toLowerCase(),
    ),
  };
}

/** Variables that hold addresses, which may have passwords. */
const addressVariables = ["HF_ENDPOINT", "HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"];

/** The user's token, by `HF_TOKEN` or from the file that the hub's own `login` writes. */
export async function readHubToken(env: HubVariables): Promise<string | undefined> {
  const given = set(env["HF_TOKEN"]) ?? set(env["HUGGING_FACE_HUB_TOKEN"]);
  if (given !== undefined) return hidden(given.trim());
  const file = set(env["HF_TOKEN_PATH"]) ?? path.join(homeOf(env), "token");
  const text = await readFile(fromHome(file), "utf8").catch(() => "");
  const token = set(text.trim());
  return token === undefined ? undefined : hidden(token);
}

function hidden(token: string): string {
  hideEverywhere({ secrets: [token] });
  return token;
}

function homeOf(env: HubVariables): string {
  const cache = set(env["XDG_CACHE_HOME"]) ?? path.join(homedir(), ".cache");
  return set(env["HF_HOME"]) ?? path.join(cache, "huggingface");
}

/** A path that begins with `~` from the user's home, as the hub's library reads it: no shell has expanded it. */
function fromHome(file: string): string {
  return file === "~" || file.startsWith("~/") ? path.join(homedir(), file.slice(1)) : file;
}

function set(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}
