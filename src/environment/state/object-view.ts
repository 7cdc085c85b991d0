import { putMember } from "./copy-graph.ts";
import { accessorOf, hasAccessors } from "./sealed.ts";
import { isPlaceIn, isSparse } from "./sparse-list.ts";
import { rawOf, type Part, type StateDraft } from "./state-draft.ts";

type Members = Record<PropertyKey, unknown>;

/**
 * Returns the view of a plain object or a list that a tool gets. Reads see the current state, and
 * writes go to the episode's own copy.
 */
export function objectView(part: Part, draft: StateDraft): object {
  const isList = Array.isArray(part.base);
  const isComputing = hasAccessors(part.base);
  // Accessors compute from the view's content.
  const read = (key: PropertyKey): unknown =>
    isComputing ? Reflect.get(rawOf(part), key, part.view) : (rawOf(part) as Members)[key];
  // The target is an empty object, because a proxy must show a frozen target's members unchanged.
  return new Proxy<object>(isList ? [] : {}, {
    get(_, key) {
      if (isList && isSearch(key)) return searchIn(part, { draft, name: key });
      const value = read(key);
      if (typeof value !== "object" || value === null) return value;
      if (!Object.hasOwn(rawOf(part), key)) return value;
      return draft.show(value, part, key);
    },
    set(_, key, value) {
      const accessor = isComputing ? accessorOf(rawOf(part), key) : undefined;
      if (accessor !== undefined) return Reflect.set(rawOf(part), key, value, part.view);
      draft.assertOpen();
      if (typeof key === "symbol") refuseSymbol(key);
      const kept = draft.unwrap(value);
      if (isList) setItem(draft.own(part) as unknown[], key, kept, draft);
      else setMember(draft.own(part) as Members, key, kept, draft);
      return true;
    },
    deleteProperty(_, key) {
      draft.assertOpen();
      if (Object.hasOwn(rawOf(part), key)) {
        removeMember(draft.own(part) as Members, key, { draft, isComputing });
      }
      return true;
    },
    has: (_, key) => key in rawOf(part),
    ownKeys: () => Reflect.ownKeys(rawOf(part)),
    getPrototypeOf: () => Reflect.getPrototypeOf(rawOf(part)),
    getOwnPropertyDescriptor(_, key) {
      const raw = rawOf(part) as Members;
      const found = Reflect.getOwnPropertyDescriptor(raw, key);
      if (found === undefined) return undefined;
      const configurable = !(isList && key === "length");
      const value = draft.show(read(key), part, key);
      return { value, enumerable: found.enumerable === true, writable: true, configurable };
    },
    defineProperty: () => false,
    setPrototypeOf: () => false,
    preventExtensions: () => false,
  });
}

/** List methods that search an item by identity. */
const searches = ["includes", "indexOf", "lastIndexOf"] as const;
type Search = (typeof searches)[number];

function isSearch(key: PropertyKey): key is Search {
  return searches.includes(key as Search);
}

/** Returns a list method that finds an item by its view, its original or its copy. */
function searchIn(
  part: Part,
  { draft, name }: { readonly draft: StateDraft; readonly name: Search },
): (sought: unknown, ...from: number[]) => unknown {
  return (sought, ...from) => {
    const found = draft.formsOf(sought).map((form): unknown => {
      return Reflect.apply(Array.prototype[name], rawOf(part), [form, ...from]);
    });
    if (name === "includes") return found.includes(true);
    const places = (found as number[]).filter((place) => place >= 0);
    if (places.length === 0) return -1;
    return name === "indexOf" ? Math.min(...places) : Math.max(...places);
  };
}

/** Refuses symbol keys, because states are compared, written and copied by names. */
function refuseSymbol(key: symbol): never {
  throw new TypeError(
    `Cannot keep a member under ${String(key)} in the state: expected a text as its name`,
  );
}

function setMember(own: Members, key: PropertyKey, value: unknown, draft: StateDraft): void {
  if (Object.hasOwn(own, key)) {
    const before = own[key];
    draft.note(() => putMember(own, key, before), value, { raw: own, key });
  } else {
    draft.note(() => delete own[key], value, { raw: own, key });
  }
  putMember(own, key, value);
}

function removeMember(
  own: Members,
  key: PropertyKey,
  { draft, isComputing }: { readonly draft: StateDraft; readonly isComputing: boolean },
): void {
  if (Array.isArray(own)) {
    // An accessor stays an accessor.
    const before = Reflect.getOwnPropertyDescriptor(own, key)!;
    draft.note(() => Object.defineProperty(own, key, before));
  } else {
    draft.noteRemoval(own, () => {
      const names = Reflect.ownKeys(own);
      const accessors = names.map((name) => (isComputing ? accessorOf(own, name) : undefined));
      const before = names.map((name, place) => (accessors[place] ? undefined : own[name]));
      return () => {
        // Restores the key's former position.
        for (const name of Reflect.ownKeys(own)) delete own[name];
        for (const [place, name] of names.entries()) {
          const accessor = accessors[place];
          if (accessor === undefined) putMember(own, name, before[place]);
          else Object.defineProperty(own, name, accessor);
        }
      };
    });
  }
  delete own[key];
}

function setItem(own: unknown[], key: PropertyKey, value: unknown, draft: StateDraft): void {
  const before = own.length;
  if (key === "length") {
    if (value === before) return;
    const cut = itemsFrom(own, Number(value));
    draft.note(() => {
      own.length = before;
      for (const [place, item] of cut) own[place] = item;
    });
    own.length = value as number;
    return;
  }
  const item = own[key as never];
  const isNew = !Object.hasOwn(own, key);
  const undo = (): void => {
    if (isNew) Reflect.deleteProperty(own, key);
    else own[key as never] = item;
    own.length = before;
  };
  draft.note(undo, value, { raw: own, key });
  own[key as never] = value;
}

/** The number of indexes that are scanned quickly, even if most are holes. */
const fewPlaces = 1024;

/** Yields a list's items with their indexes, from an index on and without holes. */
function itemsFrom(
  list: readonly unknown[],
  start: number,
): readonly (readonly [number, unknown])[] {
  const isFar = list.length - start > fewPlaces && isSparse(list);
  const places = isFar
    ? Object.keys(list).flatMap((key) => (isPlaceIn(list, key) ? Number(key) : []))
    : Array.from({ length: list.length - start }, (_, index) => start + index);
  return places
    .filter((place) => place >= start && Object.hasOwn(list, place))
    .map((place) => [place, list[place]]);
}
