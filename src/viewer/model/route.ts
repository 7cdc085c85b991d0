import { decodeOrKeep } from "../../../packages/python-values/src/support/decode-or-keep.ts";
/** The colour scheme of the token strip. */
export type StripMode = "mask" | "logprob" | "version" | "rescored";

/** The state of the page. A link contains all of it. */
export type Route =
  | {
      readonly page: "runs";
      readonly filter: string;
      readonly order: string;
      /** The run that is to be compared with another. */
      readonly pick?: string;
    }
  | {
      readonly page: "run";
      readonly run: string;
      readonly filter: string;
      readonly order: string;
      readonly view: "episodes" | "groups";
      /** The text that is searched in all conversations, or "". */
      readonly search: string;
      /** The id of the list row that has the keyboard focus. */
      readonly at?: string;
    }
  /** The settings and metrics of a run. */
  | { readonly page: "about"; readonly run: string }
  | {
      readonly page: "episode";
      readonly run: string;
      readonly episode: string;
      /** The index of the training row. */
      readonly row: number;
      readonly turn?: number;
      readonly token?: number;
      /** The text that is marked in the conversation and in the tokens. Absent if none is. */
      readonly find?: string;
      readonly mode: StripMode;
    }
  | {
      readonly page: "group";
      readonly run: string;
      readonly group: string;
      /** The number of the attempt with which the others are compared. */
      readonly base: number;
    }
  | {
      readonly page: "compare";
      readonly run: string;
      readonly other: string;
      readonly order: string;
    };

const modes: readonly StripMode[] = ["mask", "logprob", "version", "rescored"];

/** Parses the part of an address after `#`. Returns the list of runs for an unknown address. */
export function readRoute(hash: string): Route {
  const [way = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const parts = way.split("/").map(decodeOrKeep);
  const asked = new URLSearchParams(query);
  const [page, run, name] = parts;
  if (page === "run" && run !== undefined) {
    const at = asked.get("at");
    return {
      page,
      run,
      filter: asked.get("filter") ?? "",
      order: asked.get("order") ?? "",
      view: asked.get("view") === "groups" ? "groups" : "episodes",
      search: asked.get("search") ?? "",
      ...(at !== null && { at }),
    };
  }
  if (page === "about" && run !== undefined) return { page, run };
  if (page === "episode" && run !== undefined && name !== undefined) {
    const [turn, token] = [readCount(asked, "turn"), readCount(asked, "token")];
    const find = asked.get("find");
    return {
      page,
      run,
      episode: name,
      row: readCount(asked, "row") ?? 0,
      ...(turn !== undefined && { turn }),
      ...(token !== undefined && { token }),
      ...(find !== null && { find }),
      mode: modes.find((mode) => mode === asked.get("mode")) ?? "mask",
    };
  }
  if (page === "group" && run !== undefined && name !== undefined) {
    return { page, run, group: name, base: readCount(asked, "base") ?? 0 };
  }
  if (page === "compare" && run !== undefined && name !== undefined) {
    return { page, run, other: name, order: asked.get("order") ?? "" };
  }
  const pick = asked.get("pick");
  return {
    page: "runs",
    filter: asked.get("filter") ?? "",
    order: asked.get("order") ?? "",
    ...(pick !== null && { pick }),
  };
}

/** Returns the link to a route. `readRoute()` parses it. */
export function linkTo(route: Route): string {
  switch (route.page) {
    case "runs": {
      const { filter, order, pick } = route;
      return address([], { filter, order, pick });
    }
    case "about":
      return address(["about", route.run], {});
    case "run": {
      const { filter, order, view, search, at } = route;
      return address(["run", route.run], {
        view: view === "groups" ? view : "",
        filter,
        search,
        order,
        at,
      });
    }
    case "episode": {
      const { row, turn, token, find, mode } = route;
      return address(["episode", route.run, route.episode], {
        row: row === 0 ? "" : row,
        turn,
        token,
        find,
        mode: mode === "mask" ? "" : mode,
      });
    }
    case "group":
      return address(["group", route.run, route.group], {
        base: route.base === 0 ? "" : route.base,
      });
    case "compare":
      return address(["compare", route.run, route.other], { order: route.order });
  }
}

function address(
  parts: readonly string[],
  asked: Readonly<Record<string, string | number | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const way = `#/${parts.map(encodeURIComponent).join("/")}`;
  return query.size === 0 ? way : `${way}?${query.toString()}`;
}

function readCount(asked: URLSearchParams, name: string): number | undefined {
  const value = asked.get(name) ?? "";
  return /^\d{1,9}$/.test(value) ? Number(value) : undefined;
}
