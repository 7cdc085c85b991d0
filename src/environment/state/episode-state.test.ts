import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { EpisodeState } from "./episode-state.ts";

interface Item {
  n: number;
  tags: string[];
}

interface State {
  byName: { [name: string]: Item };
  list: Item[];
  map: Map<string, Item>;
  set: Set<string>;
  days: { [name: string]: Date };
  bytes: Uint8Array[];
}

function makeState(): State {
  const record = (n: number): Item => ({ n, tags: [`tag ${n}`] });
  return {
    byName: { a: record(1), b: record(2) },
    list: [record(3), record(4), record(5)],
    map: new Map([
      ["a", record(6)],
      ["b", record(7)],
    ]),
    set: new Set(["a"]),
    days: { a: new Date(0), b: new Date(1) },
    bytes: [new Uint8Array([1, 2, 3, 4]).subarray(1)],
  };
}

/** Every way to change a state. Each is applied to a view and to plain objects. */
const operations: { readonly [name: string]: (state: State, key: string, n: number) => void } = {
  write: ({ byName }, key, n) => byName[key] && (byName[key].n = n),
  add: ({ byName }, key, n) => (byName[key] = { n, tags: [] }),
  remove: ({ byName }, key) => delete byName[key],
  tag: ({ list }, key, n) => list[n]?.tags.push(key),
  push: ({ list }, key, n) => list.push({ n, tags: [key] }),
  splice: ({ list }, _, n) => list.splice(n, 1),
  shift: ({ list }) => list.shift(),
  unshift: ({ list }, key, n) => list.unshift({ n, tags: [key] }),
  // eslint-disable-next-line unicorn/no-array-reverse -- the test is about the change in place
  reverse: ({ list }) => list.reverse(),
  sort: ({ list }) => list.sort((a, b) => a.n - b.n),
  cut: ({ list }, _, n) => (list.length = Math.min(n, list.length)),
  move({ byName, list }, key, n) {
    const record = list.shift();
    if (record === undefined) return;
    byName[key] = record;
    record.n = n;
  },
  lend({ byName, map }, key, n) {
    const record = byName[key];
    if (record === undefined) return;
    map.set(key, record);
    delete byName[key];
    record.tags.push(String(n));
  },
  wrap({ byName, list }, key, n) {
    const record = byName[key];
    if (record === undefined) return;
    const fresh = { n, tags: record.tags };
    list.push(fresh);
    delete byName[key];
    fresh.n += 1;
    list.at(-1)!.n += 1;
  },
  mapWrite: ({ map }, key, n) => map.get(key) && (map.get(key)!.n = n),
  mapSet: ({ map }, key, n) => map.set(key, { n, tags: [] }),
  mapDelete: ({ map }, key) => map.delete(key),
  mapEach: ({ map }, _, n) => map.forEach((record) => (record.n += n)),
  mapClear: ({ map }) => map.clear(),
  setAdd: ({ set }, key) => set.add(key),
  setDelete: ({ set }, key) => set.delete(key),
  setClear: ({ set }) => set.clear(),
  share({ byName, list, map }, key, n) {
    const fresh = { n, tags: [] };
    byName[key] = fresh;
    map.set(key, fresh);
    list.push(byName[key]);
    list.at(-1)!.tags.push(key);
  },
  mapWriteTags: ({ map }, key, n) => map.get(key)?.tags.push(String(n)),
  dayWrite: ({ days }, key, n) => days[key]?.setUTCDate(n),
  dayAdd: ({ days }, key, n) => (days[key] = new Date(n)),
  dayShare: ({ days }, key) => days["a"] && (days[key] = days["a"]),
  dayRemove: ({ days }, key) => delete days[key],
  bytesWrite: ({ bytes }, _, n) => bytes.at(-1)?.fill(n, n % 3),
  bytesAdd: ({ bytes }, _, n) => bytes.unshift(Buffer.from([n, n, n])),
  bytesPart: ({ bytes }, _, n) => bytes[0] && bytes.push(bytes[0].subarray(n % 2)),
  bytesPair({ bytes }, key, n) {
    const pair = Buffer.from([n, n, key.length]);
    bytes.push(pair.subarray(1), pair);
  },
  bytesShift: ({ bytes }) => bytes.shift(),
  each({ byName }, _, n) {
    for (const record of Object.values(byName)) record.tags = [...record.tags, String(n)];
  },
};

async function change<Kept>(state: EpisodeState<Kept>, work: (draft: Kept) => void, isKept = true) {
  await state.change(
    async (draft) => work(draft),
    () => isKept,
  );
}

describe("EpisodeState", () => {
  test("equals plain objects, also in order, after any calls of which some are undone", async () => {
    const step = fc.record({
      calls: fc.array(
        fc.tuple(
          fc.constantFrom(...Object.keys(operations)),
          fc.constantFrom("a", "b", "__proto__", "10"),
          fc.nat(4),
        ),
        { maxLength: 4 },
      ),
      isKept: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const base = makeState();
        const state = new EpisodeState(base);
        let model = makeState();
        const texts: string[] = [];
        for (const { calls, isKept } of steps) {
          const work = (target: State) => {
            // A key is `own` in a plain object only if it is defined as one.
            for (const [name, key, n] of calls) {
              if (key !== "__proto__" || name.startsWith("map")) operations[name]!(target, key, n);
            }
          };
          await change(state, work, isKept);
          const changed = structuredClone(model);
          work(changed);
          if (isKept) model = structuredClone(changed);
          texts.push(textOf(state.view));
          expect(texts.at(-1)).toBe(textOf(model));
        }
        // structuredClone() makes no Buffers.
        const closed = state.close();
        const bytes = closed.bytes.map((one) => new Uint8Array(one));
        expect({ ...closed, bytes }).toEqual(model);
        expect(state.initial).toEqual(makeState());
        expect(base).toEqual(makeState());
      }),
      { numRuns: 500 },
    );
  });

  test("is gone through as it changes, as plain Maps and Sets are", async () => {
    const work = ({ byName, list, map, set }: State) => {
      const passed: string[] = [];
      map.set("c", { n: 8, tags: [] });
      for (const [key, record] of map) {
        passed.push(key);
        record.n += 1;
        // Those that come later are written before they are come to.
        for (const other of map.values()) other.n *= 2;
        if (key === "a") map.delete("b");
        if (key === "c") map.set("d", { n: 1, tags: [] });
      }
      for (const key of map.keys()) if (map.delete("a")) map.set(`late ${key}`, { n: 1, tags: [] });
      map.forEach((record) => list.push(record));
      for (const one of set) {
        passed.push(one);
        if (set.size < 4) set.add(`${one}!`);
        set.delete("a!");
      }
      byName["passed"] = { n: 0, tags: passed };
    };
    const base = makeState();
    const [state, model] = [new EpisodeState(base), makeState()];
    await change(state, work);
    work(model);
    expect(textOf(state.close())).toBe(textOf(model));
    // Nothing was copied before the first write.
    const other = new EpisodeState(base);
    await change(other, ({ map, set }) => {
      for (const [key, record] of map) {
        if (key === "a") map.get("b")!.n = 100;
        else record.n += 1;
      }
      for (const one of set) if (one === "a") set.add("b").delete("a");
    });
    expect([other.close().map.get("b")!.n, [...other.close().set]]).toEqual([101, ["b"]]);
    expect(base).toEqual(makeState());
  });

  test("recomputes a getter of the state", async () => {
    const make = () => ({
      items: [{ n: 1 }],
      note: "",
      get total() {
        return this.items.reduce((sum, { n }) => sum + n, 0);
      },
      get first() {
        return this.items[0]!;
      },
      set title(text: string) {
        this.note = text;
      },
      extra: undefined as object | undefined,
    });
    type Cart = ReturnType<typeof make>;
    const base = make();
    for (const state of [new EpisodeState(base), new EpisodeState(base)]) {
      const change = async (work: (cart: Cart) => void, isKept = true) => {
        await state.change(
          async (cart) => work(cart),
          () => isKept,
        );
      };
      await change((cart) => {
        cart.items.push({ n: 2 });
        cart.title = "two";
        cart.first.n = 5;
        expect(cart.total).toBe(7);
      });
      await change((cart) => {
        Reflect.deleteProperty(cart, "total");
        cart.title = "gone";
      }, false);
      await change((cart) => {
        cart.extra = Object.assign(make(), { items: [{ n: 3 }] });
        cart.items.push({ n: 4 });
      });
      await change((cart) => void (cart.extra as Cart).items.push({ n: 1 }));
      const closed = state.close();
      expect([closed.total, closed.note, (closed.extra as Cart).total]).toEqual([11, "two", 4]);
      expect(Object.keys(closed)).toEqual(Object.keys(make()));
    }
    expect([base.total, base.note]).toEqual([1, ""]);
  });

  test("compares Sets like plain ones, if this version of JavaScript can", async () => {
    const state = new EpisodeState(makeState());
    const names = ["union", "intersection", "difference", "symmetricDifference", "isSubsetOf"];
    const compare = (set: Set<string>): unknown[] =>
      names.map((name) => {
        const method = (set as unknown as Record<string, unknown>)[name];
        if (typeof method !== "function") return "not there";
        const answer: unknown = Reflect.apply(method, set, [new Set(["b"])]);
        return answer instanceof Set ? [...answer] : answer;
      });
    await change(state, ({ set }) => {
      set.add("c");
      expect(compare(set)).toEqual(compare(new Set(["a", "c"])));
    });
  });

  test("inserts missing entries into a Map, like newer versions of JavaScript", async () => {
    interface Upsert<Value> extends Map<string, Value> {
      getOrInsert(key: string, value: Value): Value;
      getOrInsertComputed(key: string, compute: (key: string) => Value): Value;
    }
    // These methods read a Map's internal entries.
    const own: object = Map.prototype;
    const [has, get, set] = ["has", "get", "set"].map(
      (name) => Reflect.get(own, name) as (...given: unknown[]) => unknown,
    );
    const upsert = function (this: object, key: unknown, value: unknown): unknown {
      if (Reflect.apply(has!, this, [key]) !== true) Reflect.apply(set!, this, [key, value]);
      return Reflect.apply(get!, this, [key]);
    };
    const names = ["getOrInsert", "getOrInsertComputed"] as const;
    const before = names.map((name) => Object.getOwnPropertyDescriptor(own, name));
    for (const name of names) {
      Object.defineProperty(own, name, { value: upsert, configurable: true });
    }
    try {
      const base = { loans: new Map([["Ann", ["Emma"]]]) };
      const [state, other] = [new EpisodeState(base), new EpisodeState(base)];
      const lend = async (who: string, isKept = true) => {
        const work = (draft: typeof base) => {
          const loans = draft.loans as Upsert<string[]>;
          loans.getOrInsert(who, []).push("Dune");
          loans.getOrInsertComputed(`${who}!`, (name) => [name]).push("Emil");
        };
        await change(state, work, isKept);
      };
      await lend("Cy", false);
      await lend("Ann");
      await lend("Bo");
      const loans = { Ann: ["Emma", "Dune"], "Ann!": ["Ann!", "Emil"] };
      const kept = { ...loans, Bo: ["Dune"], "Bo!": ["Bo!", "Emil"] };
      const readOnly = "Cannot change the state here: it is read only";
      for (const shown of [state.view.loans, state.close().loans, other.initial.loans]) {
        const one = shown as Upsert<string[]>;
        expect(one.getOrInsert("Ann", [])).toEqual(one.get("Ann"));
        expect(() => one.getOrInsert("Di", [])).toThrow(readOnly);
        expect(() => one.getOrInsertComputed("Di", () => [])).toThrow(readOnly);
      }
      expect(Object.fromEntries(state.close().loans)).toEqual(kept);
      expect(other.close().loans).toEqual(new Map([["Ann", ["Emma"]]]));
    } finally {
      for (const [place, name] of names.entries()) {
        if (before[place] === undefined) Reflect.deleteProperty(own, name);
        else Object.defineProperty(own, name, before[place]);
      }
    }
  });

  test("remembers once a call the original of an object from which many are removed", async () => {
    const names = Array.from({ length: 50 }, (_, n) => `name ${n}`);
    const make = () => ({
      object: Object.fromEntries(names.map((name) => [name, 1])),
      map: new Map(names.map((name) => [name, 1])),
      set: new Set(names),
    });
    const state = new EpisodeState(make());
    const spies = [
      vi.spyOn(Reflect, "ownKeys"),
      vi.spyOn(Map.prototype, "keys"),
      vi.spyOn(Map.prototype, Symbol.iterator),
      vi.spyOn(Set.prototype, "values"),
      vi.spyOn(Set.prototype, Symbol.iterator),
    ];
    let counts: number[] = [];
    const takeOut = async ({ object, map, set }: ReturnType<typeof make>) => {
      for (const name of names) {
        delete object[name];
        map.delete(name);
        set.delete(name);
      }
      map.set("late", 1);
      counts = spies.map(({ mock }) => mock.calls.length);
    };
    await state.change(takeOut, () => false);
    for (const spy of spies) spy.mockRestore();
    // Once to copy it, and once to remember it.
    expect(Math.max(...counts)).toBeLessThanOrEqual(2);
    const { object, map, set } = state.view;
    expect([Object.keys(object), [...map.keys()], [...set]]).toEqual([names, names, names]);
    await state.change(takeOut, () => true);
    expect(state.close()).toEqual({ object: {}, map: new Map([["late", 1]]), set: new Set() });
  });

  test("copies only written parts", async () => {
    const base = makeState();
    const state = new EpisodeState(base);
    await change(state, ({ byName }) => void (byName["a"]!.n = 9));
    const closed = state.close();
    expect(closed.byName["a"]).not.toBe(base.byName["a"]);
    expect(closed.byName["b"]).toBe(base.byName["b"]);
    expect(closed.list).toBe(base.list);
  });

  test("shares added values with their owner only during a call", async () => {
    const defaults = { n: 1, tags: ["x"] };
    const [first, second] = [new EpisodeState(makeState()), new EpisodeState(makeState())];
    for (const state of [first, second]) {
      await change(state, ({ byName }) => void (byName["c"] = defaults));
      await change(state, ({ byName }) => void (byName["c"]!.n += 1));
    }
    expect([first.close().byName["c"]?.n, second.close().byName["c"]?.n]).toEqual([2, 2]);
    expect(defaults).toEqual({ n: 1, tags: ["x"] });
  });

  test("treats an added value that is read at once as its own", async () => {
    const defaults = { n: 1, tags: ["x"] };
    for (const state of [new EpisodeState(makeState()), new EpisodeState(makeState())]) {
      await change(state, (draft) => {
        draft.byName["c"] = defaults;
        expect(draft.byName["c"]).toEqual({ n: 1, tags: ["x"] });
        draft.list.push(defaults);
      });
      await change(state, ({ byName }) => void byName["c"]!.tags.push("y"));
      expect(state.view.list.at(-1)).toEqual({ n: 1, tags: ["x", "y"] });
    }
    expect(defaults).toEqual({ n: 1, tags: ["x"] });
  });

  test("finds an added value by itself and by its view", async () => {
    const make = () => ({
      list: [{ n: 1 }, { n: 2 }],
      set: new Set<object>(),
      shelf: [] as object[],
    });
    const state = new EpisodeState(make());
    const sealed = Object.freeze({ n: 3 });
    await change(state, ({ list, set, shelf }) => {
      const fresh = { n: 4 };
      list.push(fresh, sealed);
      const shown = list[2]!;
      for (const item of [fresh, shown]) {
        expect([list.indexOf(item), list.lastIndexOf(item), list.includes(item)]).toEqual([
          2,
          2,
          true,
        ]);
        expect([list.indexOf(item, 3), list.lastIndexOf(item, 1)]).toEqual([-1, -1]);
      }
      expect([list.indexOf(sealed), list.indexOf(list[0]!), list.includes({ n: 1 })]).toEqual([
        3,
        0,
        false,
      ]);
      list[0]!.n = 9;
      expect(list.indexOf(list[0]!)).toBe(0);
      shelf.push(list[1]!);
      expect([shelf.includes(list[1]!), list.indexOf(shelf[0] as { n: number })]).toEqual([
        true,
        1,
      ]);
      set.add(shown).add(fresh);
      expect([set.size, set.has(fresh), set.has(shown)]).toEqual([1, true, true]);
      expect([set.delete(shown), set.size]).toEqual([true, 0]);
    });
    expect(state.close().list).toEqual([{ n: 9 }, { n: 2 }, { n: 4 }, { n: 3 }]);
  });

  test("keeps a Set of objects that a call adds, without outside references", async () => {
    const shared = { n: 7 };
    const make = () => ({
      items: [{ n: 1 }, { n: 2 }],
      picked: undefined as unknown as { all: Set<{ n: number }> },
      again: new Set<{ n: number }>(),
    });
    for (const state of [new EpisodeState(make()), new EpisodeState(make())]) {
      await change(state, (draft) => {
        draft.picked = { all: new Set([draft.items[0]!, shared, { n: 3 }]) };
      });
      const read = () => [...state.view.picked.all].map(({ n }) => n);
      const write = (draft: ReturnType<typeof make>) => {
        for (const one of draft.picked.all) one.n += 10;
      };
      await change(state, write, false);
      expect([read(), state.view.items.map(({ n }) => n)]).toEqual([
        [1, 7, 3],
        [1, 2],
      ]);
      await change(state, write);
      await change(state, ({ items }) => void (items[0]!.n += 100));
      expect(read()).toEqual([111, 17, 13]);
      expect(state.view.picked.all.has(state.view.items[0]!)).toBe(true);
      await change(state, (draft) => {
        draft.again = new Set([...draft.picked.all].filter(({ n }) => n < 100));
        draft.picked.all.delete(draft.items[0]!);
      });
      const closed = state.close();
      expect([[...closed.again], closed.items]).toEqual([
        [{ n: 17 }, { n: 13 }],
        [{ n: 111 }, { n: 2 }],
      ]);
      expect(closed.again).toEqual(closed.picked.all);
      expect([...closed.again][0]).toBe([...closed.picked.all][0]);
    }
    expect(shared).toEqual({ n: 7 });
  });

  test("recognizes a member that a call added to a Set, in later calls too", async () => {
    const tea = { n: 1 };
    for (const state of [
      new EpisodeState({ set: new Set<object>() }),
      new EpisodeState({ set: new Set<object>() }),
    ]) {
      await change(state, ({ set }) => void set.add(tea));
      await change(state, ({ set }) => void set.add(tea));
      expect([state.view.set.size, state.view.set.has(tea)]).toEqual([1, true]);
      await change(state, ({ set }) => void set.delete(tea));
      await change(state, ({ set }) => void set.add(tea).add([...set][0]!));
      await change(state, (draft) => void (draft.set = new Set([tea, ...draft.set])));
      expect([state.view.set.size, state.view.set.has(tea)]).toEqual([1, true]);
    }
  });

  test("recognizes the members of a Set or a list that the current call made from views", async () => {
    const tea = { n: 9 };
    const state = new EpisodeState({ set: new Set<{ n: number }>(), list: [{ n: 7 }] });
    await change(state, ({ set }) => void set.add({ n: 1 }).add({ n: 2 }).add({ n: 3 }).add(tea));
    const read = () => [...state.view.set].map(({ n }) => n);
    await change(state, (draft) => {
      draft.set = new Set([...draft.set].filter(({ n }) => n !== 1));
      const two = [...draft.set][0]!;
      expect([draft.set.has(two), draft.set.has(tea), draft.set.add(two).size]).toEqual([
        true,
        true,
        3,
      ]);
      expect([draft.set.delete(two), draft.set.delete(two), draft.set.size]).toEqual([
        true,
        false,
        2,
      ]);
    });
    expect(read()).toEqual([3, 9]);
    await change(state, (draft) => {
      const fresh = { n: 8 };
      draft.list.push(fresh);
      draft.set = new Set(draft.list);
      const members = [draft.list[0]!, draft.list[1]!, fresh];
      expect(members.map((one) => draft.set.has(one))).toEqual([true, true, true]);
      expect([draft.set.delete(fresh), draft.set.has(members[1]!)]).toEqual([true, false]);
      draft.list = [...draft.list, draft.list[0]!];
      expect(members.map((one) => draft.list.indexOf(one))).toEqual([0, 1, 1]);
      expect(members.map((one) => draft.list.lastIndexOf(one))).toEqual([2, 1, 1]);
      expect([draft.list.includes(fresh), draft.list.includes({ n: 7 })]).toEqual([true, false]);
    });
    expect(read()).toEqual([7]);
    expect(state.view.set.has(state.view.list[0]!)).toBe(true);
  });

  test("copies new members of a Set, and keeps existing ones", async () => {
    const state = new EpisodeState({ set: new Set<unknown>() });
    await change(state, ({ set }) => {
      for (let n = 0; n < 100; n++) set.add({ n });
    });
    const add = vi.spyOn(Set.prototype, "add");
    const [first, last] = [{ n: 100 }, { n: 101 }];
    await change(state, ({ set }) => {
      const known = [...set][0];
      set.delete(known);
      set.add("a").add(first).add("b").add(known).add(last);
      set.delete("b");
    });
    const raw = state.close().set;
    const addedCount = add.mock.contexts.filter((set) => set === raw).length;
    add.mockRestore();
    expect([...raw].slice(99)).toEqual(["a", { n: 100 }, { n: 0 }, { n: 101 }]);
    expect([raw.has(first), raw.has(last)]).toEqual([false, false]);
    expect(addedCount).toBe(8);
  });

  test("undoes a call's additions to a Set, after removals in any order", async () => {
    const state = new EpisodeState({ set: new Set<unknown>(["a", "b"]) });
    const write = ({ set }: { set: Set<unknown> }): void => {
      set.add("c");
      set.delete("a");
      set.add("a").add({ n: 1 });
    };
    await change(state, write, false);
    expect([...state.view.set]).toEqual(["a", "b"]);
    await change(state, write);
    expect([...state.view.set]).toEqual(["b", "c", "a", { n: 1 }]);
  });

  test("keeps an original member of a Set if a call adds a view of it", async () => {
    const first = { n: 1 };
    const state = new EpisodeState({ set: new Set([first]), other: new Set<object>() });
    await change(state, (draft) => void (draft.other = new Set(draft.set)));
    await change(state, ({ other, set }) => void other.add([...set][0]!));
    expect(state.view.other.size).toBe(1);
    expect(state.view.other.has([...state.view.set][0]!)).toBe(true);
    expect([...state.close().other][0]).toBe(first);
  });

  test.each([2, 100, 70_000])("a list of %d keeps its extra properties", async (length) => {
    const items = Array.from({ length }, (_, place) => ({ place }));
    const rows = Object.assign(items, {
      columns: ["place"],
      "01": { name: "no place" },
      "-1": 7,
    });
    const base = { rows };
    const states = [new EpisodeState(base), new EpisodeState(base)];
    for (const state of states) {
      await change(state, (draft) => void (draft.rows[0]!.place = 5));
      await change(state, (draft) => {
        draft.rows.columns.push("name");
        draft.rows["01"].name = "none";
        draft.rows.pop();
      });
      const reached = state.close().rows;
      const { columns, "01": odd, "-1": before } = reached;
      expect([reached.length, reached[0], columns, odd, before]).toEqual([
        length - 1,
        { place: 5 },
        ["place", "name"],
        { name: "none" },
        7,
      ]);
    }
    expect(base.rows.columns).toEqual(["place"]);
  });

  test("a list keeps computed extra properties, also after a write", async () => {
    const cart = Object.defineProperty(
      [{ price: 2 }] as { price: number }[] & { total: number },
      "total",
      {
        get(this: readonly { readonly price: number }[]) {
          return this.reduce((sum, { price }) => sum + price, 0);
        },
        enumerable: true,
      },
    );
    const state = new EpisodeState({ cart });
    await change(state, (draft) => {
      expect(draft.cart.total).toBe(2);
      draft.cart.push({ price: 3 });
      expect(draft.cart.total).toBe(5);
    });
    expect([state.close().cart.total, cart.total]).toEqual([5, 2]);
    const first = Object.defineProperty([{ n: 1 }], "first", {
      get: (): unknown => ({ n: first[0]!.n }),
      enumerable: true,
    });
    const brought = new EpisodeState<{ list?: object[] }>({});
    await change(brought, (draft) => void (draft.list = first));
    expect(brought.close().list).toHaveProperty("first", { n: 1 });
  });

  test("refuses a member under a Symbol, which could not be copied or compared", async () => {
    const state = new EpisodeState<Record<PropertyKey, unknown>>({ a: 1 });
    const call = change(state, (draft) => void (draft[Symbol("mark")] = { n: 1 }));
    await expect(call).rejects.toThrow(
      "Cannot keep a member under Symbol(mark) in the state: expected a text as its name",
    );
    expect(state.close()).toEqual({ a: 1 });
  });

  test("refuses an object as a key of a Map, which could not be found or compared", async () => {
    class Seat {
      readonly row = 1;
    }
    const [item, seat] = [{ id: "a" }, new Seat()];
    const stock = new Map<unknown, unknown>([
      [item, 3],
      [seat, 4],
    ]);
    const base = { items: [{ id: "b" }], stock };
    const refused =
      "Cannot use an object as a key of a Map in the state: expected a text or a number, such as its id";
    for (const state of [new EpisodeState(base), new EpisodeState(base)]) {
      const calls: ((draft: typeof base) => unknown)[] = [
        (draft) => draft.stock.set({ id: "c" }, 1),
        (draft) => draft.stock.set(draft.items[0], 1),
        (draft) => draft.stock.get(draft.items[0]),
        (draft) => draft.stock.has(draft.items[0]),
        (draft) => draft.stock.delete(draft.items[0]),
      ];
      for (const call of calls) await expect(change(state, call)).rejects.toThrow(refused);
      // A part of the initial state is found by the original, and stays read-only.
      await change(state, (draft) => {
        draft.stock.set(item, (draft.stock.get(item) as number) + 1).set(seat, 5);
        draft.stock.set(new Date(0), 6).set("text", 7).set(null, 8);
        expect([draft.stock.get({}), draft.stock.has({}), draft.stock.delete({})]).toEqual([
          undefined,
          false,
          false,
        ]);
      });
      const writeKey = (draft: typeof base): void => {
        ([...draft.stock.keys()][0] as { id: string }).id = "z";
      };
      await expect(change(state, writeKey)).rejects.toThrow("read only");
      expect([...state.close().stock.values()]).toEqual([4, 5, 6, 7, 8]);
      expect(Object.isFrozen(seat)).toBe(false);
    }
    expect([...stock.values()]).toEqual([3, 4]);
  });

  test.each<[what: string, bring: (draft: Record<string, unknown>) => unknown]>([
    ["a part of the state", ({ items }) => new Map([[(items as object[])[0], 1]])],
    ["one that the call made", () => new Map([[{ n: 2 }, 1]])],
    ["one further in", () => ({ all: [new Set([1]), new Map([["a", new Map([[{}, 1]])]])] })],
    ["a list of the state", ({ items }) => new Map([[items, 1]])],
    ["a Date of the state", ({ due }) => new Map([[due, 1]])],
  ])("refuses an added Map with an object as a key: %s", async (_, bring) => {
    const state = new EpisodeState<Record<string, unknown>>({
      items: [{ n: 1 }],
      due: new Date(0),
    });
    const call = change(state, (draft) => {
      draft["done"] = [1];
      draft["marks"] = bring(draft);
    });
    await expect(call).rejects.toThrow(
      "Cannot use an object as a key of a Map in the state: expected a text or a number, such as its id",
    );
    expect(state.close()).toEqual({ items: [{ n: 1 }], due: new Date(0) });
  });

  test("refuses a list and a Date of the state as a key, and takes others by their texts", async () => {
    const base = { home: [0, 1], due: new Date(0), visits: new Map<unknown, unknown>() };
    const state = new EpisodeState(base);
    for (const key of ["home", "due"] as const) {
      for (const method of ["set", "get", "has", "delete"] as const) {
        const call = change(state, (draft) => void draft.visits[method](draft[key], 1));
        await expect(call).rejects.toThrow("Cannot use an object as a key of a Map in the state");
      }
    }
    await change(state, (draft) => void (draft.visits = new Map([[[0, 1], 1]])));
    expect([...state.close().visits]).toEqual([[[0, 1], 1]]);
  });

  test("accepts added Maps and lists, including frozen ones", async () => {
    const map = Object.freeze(new Map([["a", { n: 1, tags: [] }]]));
    const state = new EpisodeState<Record<string, unknown>>({ map });
    const list = [new Map([["b", new Set([1])]])];
    await state.change(
      async (draft) => void (draft["list"] = list),
      () => true,
    );
    const [held] = state.view["list"] as typeof list;
    expect([...held!.get("b")!]).toEqual([1]);
    expect(() => list.pop()).toThrow(TypeError);
    expect([...(state.close()["map"] as typeof map)]).toEqual([["a", { n: 1, tags: [] }]]);
  });

  test("keeps one object for two references", async () => {
    const ann = { n: 1, tags: [] as string[] };
    const list = [ann];
    const make = () => ({ ...makeState(), list, map: new Map([["ann", ann]]) });
    for (const base of [make(), make()]) {
      const state = new EpisodeState(base);
      await change(state, (draft) => {
        draft.list[0]!.n = 5;
        draft.byName["ann"] = draft.map.get("ann")!;
      });
      const fresh = { n: 7, tags: [] };
      await change(state, ({ byName, list: all }) => {
        byName["fresh"] = fresh;
        all.push(fresh);
      });
      await change(state, ({ byName, map }) => {
        byName["ann"]!.tags.push("x");
        byName["fresh"]!.n = 8;
        map.set("late", byName["fresh"]!);
      });
      await change(state, ({ map }) => void map.get("late")!.tags.push("no"), false);
      const closed = state.close();
      const wanted = { n: 5, tags: ["x"] };
      expect([closed.list[0], closed.map.get("ann"), closed.byName["ann"]]).toEqual(
        Array.from({ length: 3 }, () => wanted),
      );
      expect([closed.list[1], closed.map.get("late")]).toEqual([
        { n: 8, tags: [] },
        { n: 8, tags: [] },
      ]);
      expect(base.list).toEqual([{ n: 1, tags: [] }]);
    }
  });

  test("finds double references in parts that other states had separately", async () => {
    const ann = { n: 1, tags: [] as string[] };
    const people = new Map([["ann", ann]]);
    void new EpisodeState({ ...makeState(), map: people });
    const state = new EpisodeState({ ...makeState(), map: people, byName: { owner: ann } });
    await change(state, ({ byName }) => void (byName.owner.n = 2));
    expect(state.close().map.get("ann")?.n).toBe(2);
    expect(ann.n).toBe(1);
  });

  test("finds double references in parts of other states that share an object", async () => {
    const [ann, bo] = [{ n: 1 }, { n: 1 }];
    const [org, first, second] = [{ ann }, { bo }, { bo }];
    for (const earlier of [{ ann }, { org, first }, { second }]) void new EpisodeState(earlier);
    for (const [base, path] of [
      [{ org, ann }, "ann"],
      [{ ann, org }, "ann"],
      [{ first, second }, "bo"],
    ] as const) {
      const state = new EpisodeState<Record<string, Record<string, unknown>>>(base);
      await state.change(
        async (parts) => {
          const part = parts["org"] ?? parts["first"]!;
          (part[path] as { n: number }).n = 2;
        },
        () => true,
      );
      expect(JSON.stringify(state.close())).not.toContain("1");
    }
    expect([ann, bo]).toEqual([{ n: 1 }, { n: 1 }]);
    // Parts without a shared object are not copied completely.
    const apart = new EpisodeState({ org, second });
    await apart.change(
      async (parts) => void (parts.org.ann.n = 2),
      () => true,
    );
    expect(apart.close().second).toBe(second);
  });

  test("cannot be written between calls and after the end", async () => {
    const state = new EpisodeState(makeState());
    const { view } = state;
    const readOnly = "Cannot change the state here: it is read only";
    expect(() => view.list.push({ n: 1, tags: [] })).toThrow(readOnly);
    expect(() => view.map.set("c", { n: 1, tags: [] })).toThrow(readOnly);
    expect(() => view.set.add("c")).toThrow(readOnly);
    expect(() => delete view.byName["a"]).toThrow(readOnly);
    const closed = state.close();
    expect(() => closed.map.delete("a")).toThrow(readOnly);
    expect(() => closed.list.push({ n: 1, tags: [] })).toThrow("not extensible");
  });

  describe("of Dates and binary data", () => {
    const make = () => ({
      due: new Date(0),
      board: new Uint8Array(3),
      note: Buffer.from("abc"),
      joined: Buffer.concat([Buffer.from("ab"), Buffer.from("cd")]),
      record: { view: new DataView(new ArrayBuffer(4), 1, 2) },
      map: new Map([["grid", new Float64Array(2)]]),
      list: [new ArrayBuffer(2)],
    });
    type Held = ReturnType<typeof make>;
    const write = (state: Held): void => {
      state.due.setUTCDate(state.due.getUTCDate() + 1);
      state.board[1]! += 1;
      state.note[0]! += 1;
      state.joined[3]! += 1;
      state.record.view.setUint8(0, state.record.view.getUint8(0) + 1);
      for (const grid of state.map.values()) grid[1]! += 0.5;
      new Uint8Array(state.list[0]!)[1]! += 1;
    };
    const read = ({ due, board, note, joined, record, map, list }: Held) => [
      due.toISOString(),
      [...board],
      note.toString(),
      joined.toString(),
      record.view.getUint8(0),
      [...map.get("grid")!],
      [...new Uint8Array(list[0]!)],
    ];
    const begun = ["1970-01-01T00:00:00.000Z", [0, 0, 0], "abc", "abcd", 0, [0, 0], [0, 0]];
    const twice = ["1970-01-03T00:00:00.000Z", [0, 2, 0], "cbc", "abcf", 2, [0, 1], [0, 2]];

    test("each episode has its own copy, undoes a call's writes, and keeps the initial data", async () => {
      const base = make();
      const states = [new EpisodeState(base), new EpisodeState(base)];
      // Both at the same time.
      for (const state of states) {
        await change(state, write, false);
        expect(read(state.view)).toEqual(begun);
        await change(state, write);
      }
      for (const state of states) {
        await change(state, write);
        await change(state, write, false);
        expect(read(state.view)).toEqual(twice);
        const closed = state.close();
        expect([read(closed), read(state.initial)]).toEqual([twice, begun]);
        expect(
          [closed.note, closed.joined, closed.board].map((one) => Buffer.isBuffer(one)),
        ).toEqual([true, true, false]);
        // Writes of score() stay invisible to other episodes.
        for (const one of [closed, state.initial]) one.board.fill(7);
        expect(() => closed.due.setTime(1)).toThrow("it is read only");
        expect(() => state.initial.due.setTime(1)).toThrow("it is read only");
      }
      expect(read(base)).toEqual(begun);
      expect(read(new EpisodeState(base).initial)).toEqual(begun);
    });

    test("copies a Buffer's own bytes, not the pool around them", async () => {
      const state = new EpisodeState<Record<string, Buffer | null>>({
        note: Buffer.from("hello"),
        signature: null,
        later: null,
      });
      await change(state, (draft) => {
        draft["signature"] = Buffer.from(`signed ${draft["note"]!.toString()}`);
        draft["later"] = Buffer.from("later");
        expect(draft["signature"].toString()).toBe("signed hello");
      });
      await change(state, (draft) => void draft["signature"]!.write("S"));
      await change(state, (draft) => void draft["note"]!.write("J"), false);
      const { note, signature, later } = state.close();
      expect([note, signature, later].map(String)).toEqual(["hello", "Signed hello", "later"]);
      expect(note!.buffer.byteLength).toBeLessThan(16);
    });

    test("keeps views of shared bytes shared, in initial and added data", async () => {
      const whole = Buffer.from("0123456789abcdefghij");
      const all = whole.subarray(3);
      const make = () => ({ all, part: all.subarray(2, 5), added: [] as Uint8Array[] });
      for (const state of [new EpisodeState(make()), new EpisodeState(make())]) {
        await change(state, ({ added, part }) => {
          const fresh = new Uint8Array([1, 2, 3, 4]);
          added.push(fresh, fresh.subarray(1, 3));
          added.unshift(part.subarray(1));
        });
        await change(state, ({ part, added }) => {
          part[1] = 33;
          added[2]![0] = 9;
        });
        const clear = ({ added, all: bytes }: ReturnType<typeof make>) => {
          for (const one of [bytes, added[1]!]) one.fill(0);
        };
        await change(state, clear, false);
        const closed = state.close();
        expect([closed.all, closed.part, closed.added[0]].map(String)).toEqual([
          "345!789abcdefghij",
          "5!7",
          "!7",
        ]);
        expect([closed.added[1], closed.added[2]].map(String)).toEqual(["1,9,3,4", "9,3"]);
      }
    });

    test("is one thing at all places, in all reads, and to those that look for it", async () => {
      const due = new Date(0);
      const board = new Uint8Array(2);
      const make = () => ({ due, board, map: new Map([["due", due]]), list: [board, board] });
      for (const state of [new EpisodeState(make()), new EpisodeState(make())]) {
        await change(state, (draft) => {
          expect(draft.map.get("due")).toBe(draft.due);
          expect(draft.list[1]).toBe(draft.board);
          expect([draft.list.indexOf(draft.board), draft.list.includes(draft.list[1]!)]).toEqual([
            0,
            true,
          ]);
          draft.due.setTime(5);
          draft.list[0]![1] = 5;
        });
        await change(state, (draft) => void draft.map.set("again", draft.due));
        await change(state, ({ map }) => void map.get("again")!.setTime(6));
        const closed = state.close();
        expect(closed.map.get("again")).toBe(closed.due);
        expect([closed.due.getTime(), closed.map.get("due")!.getTime()]).toEqual([6, 6]);
        expect([closed.list[1], closed.list[0]]).toEqual([closed.board, new Uint8Array([0, 5])]);
        expect(closed.list[1]).toBe(closed.board);
        expect(state.initial.list[1]).toBe(state.initial.board);
      }
      expect([due.getTime(), [...board]]).toEqual([0, [0, 0]]);
    });

    test("copies of a large state only the parts with binary data, and no Date that is only read", async () => {
      const base = {
        records: { a: { n: 1, due: new Date(0) }, b: { n: 2, due: new Date(0) } },
        boards: { a: { cells: new Uint8Array(2) } },
      };
      const state = new EpisodeState(base);
      await change(state, ({ records, boards }) => {
        boards.a.cells[0] = records.b.due.getTime() + 1;
        records.a.due.setTime(1);
      });
      const closed = state.close();
      expect(closed.records.b).toBe(base.records.b);
      expect(closed.records.a.due).toEqual(new Date(1));
      expect([state.initial.records, state.binaryLength]).toEqual([base.records, 2]);
      expect(state.initial.records).toBe(base.records);
    });

    test("shares added data with its owner only during the call", async () => {
      const epoch = new Date(0);
      const defaults = { due: epoch, all: new Set([epoch]), board: new Uint8Array(2) };
      for (const state of [1, 2].map(() => new EpisodeState<Record<string, typeof defaults>>({}))) {
        await change(state, (draft) => void (draft["a"] = defaults));
        await change(state, (draft) => void (draft["b"] = { ...defaults, due: epoch }));
        const touch = ({ a, b }: Record<string, typeof defaults>): void => {
          for (const one of [a!, b!]) {
            one.due.setTime(one.due.getTime() + 1);
            one.board[0]! += 1;
          }
        };
        await change(state, touch, false);
        await change(state, touch);
        const { a, b } = state.close();
        expect([a!.due.getTime(), b!.due.getTime(), a!.board[0], b!.board[0]]).toEqual([
          1, 1, 1, 1,
        ]);
      }
      expect([epoch.getTime(), [...defaults.board]]).toEqual([0, [0, 0]]);
    });

    test("may be in a Set, the complete state, or the result of a getter", async () => {
      const deep = { cells: new Uint8Array(1) };
      const sets = { all: new Set<Uint8Array | { cells: Uint8Array }>([new Uint8Array(1), deep]) };
      const cart = {
        days: [new Date(0)],
        get first(): Date {
          return this.days[0]!;
        },
      };
      const [board, day] = [new Uint8Array(2), new Date(0)];
      for (let round = 0; round < 2; round++) {
        const held = new EpisodeState(sets);
        const later = ({ all }: typeof sets) => {
          for (const one of all) (one instanceof Uint8Array ? one : one.cells)[0]! += 1;
        };
        await change(held, later);
        await change(held, later, false);
        expect([...held.close().all]).toEqual([
          new Uint8Array([1]),
          { cells: new Uint8Array([1]) },
        ]);
        const boards = new EpisodeState(board);
        await change(boards, (draft) => void (draft[0] = 1));
        await change(boards, (draft) => void (draft[1] = 1), false);
        expect([boards.view, boards.close(), boards.initial].map((one) => [...one])).toEqual([
          [1, 0],
          [1, 0],
          [0, 0],
        ]);
        const days = new EpisodeState(day);
        await change(days, (draft) => void draft.setTime(3));
        await change(days, (draft) => void draft.setTime(4), false);
        expect([days.close(), days.initial]).toEqual([new Date(3), new Date(0)]);
        const carts = new EpisodeState(cart);
        await change(carts, ({ first }) => void first.setTime(4));
        await change(carts, ({ first }) => void first.setTime(5), false);
        expect(carts.close().first).toEqual(new Date(4));
      }
      expect([[...board], day, cart.first, [...deep.cells]]).toEqual([
        [0, 0],
        new Date(0),
        new Date(0),
        [0],
      ]);
    });

    test("is a Date to all that take one", async () => {
      const state = new EpisodeState({ due: new Date(0), other: new Date(Number.NaN) });
      expect(() => state.view.due.setTime(1)).toThrow("it is read only");
      await change(state, ({ due, other }) => {
        due.setUTCFullYear(2026, 10, 24);
        const copy = new (due.constructor as DateConstructor)(due);
        expect(Object.getPrototypeOf(copy)).toBe(Date.prototype);
        expect([copy, structuredClone(due)]).toEqual([new Date(due), new Date(due)]);
        expect([due instanceof Date, JSON.stringify(due), due > new Date(0)]).toEqual([
          true,
          '"2026-11-24T00:00:00.000Z"',
          true,
        ]);
        expect(Number.isNaN(other.getTime())).toBe(true);
        due.setTime(2);
      });
      expect(state.close()).toEqual({ due: new Date(2), other: new Date(Number.NaN) });
    });

    test("reflects a call's writes to a Date that it added, for all readers", async () => {
      const state = new EpisodeState<Record<string, unknown>>({ all: new Set() });
      const read = (draft: Record<string, unknown>): unknown[] =>
        [draft["due"], ...(draft["all"] as Set<Date>)].map((due) =>
          new Date(due as Date).getTime(),
        );
      await change(state, (draft) => {
        const due = new Date(1);
        draft["due"] = due;
        (draft["all"] as Set<Date>).add(due);
        expect(read(draft)).toEqual([1, 1]);
        due.setTime(2);
        expect(read(draft)).toEqual([2, 2]);
        due.setTime(3);
      });
      expect(read(state.view)).toEqual([3, 3]);
      await change(state, ({ due }) => void (due as Date).setTime(4), false);
      expect(read(state.view)).toEqual([3, 3]);
    });

    test("passes a Date of an author's own class unchanged", () => {
      class Day extends Date {}
      const day = new Day(0);
      expect(new EpisodeState({ day }).view.day).toBe(day);
    });
  });

  describe("of classes of its author's", () => {
    class Counts extends Map<string, number> {
      override get(key: string): number {
        return super.get(key) ?? 0;
      }
    }
    class Names extends Set<string> {
      override has(name: string): boolean {
        return super.has(name.toLowerCase());
      }
    }

    test("passes Maps and Sets unchanged", async () => {
      const make = () => ({ counts: new Counts(), names: new Names(["ann"]) });
      const base = make();
      const state = new EpisodeState<ReturnType<typeof make> & { added?: Counts }>(base);
      const added = new Counts([["b", 5]]);
      await change(state, (draft) => {
        draft.counts.set("a", draft.counts.get("a") + 1);
        expect(draft.names.has("Ann")).toBe(true);
        draft.added = added;
      });
      await change(state, (draft) => void draft.added!.set("b", draft.added!.get("c") + 1));
      const closed = state.close();
      expect([closed.counts, closed.names, closed.added]).toEqual([base.counts, base.names, added]);
      expect(closed.counts).toBe(base.counts);
      expect([closed.counts.get("a"), added.get("b")]).toEqual([1, 1]);
      const whole = new EpisodeState(new Counts());
      await change(whole, (counts) => void counts.set("a", counts.get("a") + 1));
      expect(whole.close().get("a")).toBe(1);
    });

    test("does not treat the view of a Map or a Set as a user's class", async () => {
      const make = () => ({ map: new Map([["a", { n: 1 }]]), set: new Set(["a"]), again: {} });
      for (const state of [new EpisodeState(make()), new EpisodeState(make())]) {
        await change(state, (draft) => {
          draft.again = { map: draft.map, set: draft.set };
          const Copy = draft.map.constructor as MapConstructor;
          expect(new Copy(draft.map).get("a")).toBe(draft.map.get("a"));
        });
        await change(state, ({ map, set }) => {
          map.get("a")!.n += 1;
          set.add("b");
        });
        const { map, set, again } = state.close();
        expect(again).toEqual({ map: new Map([["a", { n: 2 }]]), set: new Set(["a", "b"]) });
        expect(again).toEqual({ map, set });
      }
    });

    test("lists stay of their class, with their own members, and are each episode's own", async () => {
      class Shelf extends Array<{ n: number }> {
        limit: number;
        constructor({ limit, items }: { limit: number; items: { n: number }[] }) {
          super();
          this.limit = limit;
          for (const item of items) this[this.length] = item;
        }
        put(n: number): boolean {
          if (this.length >= this.limit) return false;
          this[this.length] = { n };
          this.limit -= 1;
          return true;
        }
      }
      const base = { shelf: new Shelf({ limit: 4, items: [{ n: 1 }] }) };
      for (const state of [new EpisodeState(base), new EpisodeState(base)]) {
        await change(state, ({ shelf }) => void shelf.put(9), false);
        await change(state, ({ shelf }) => expect([shelf.put(2), shelf.limit]).toEqual([true, 3]));
        await change(state, ({ shelf }) => expect([shelf.put(3), shelf.limit]).toEqual([true, 2]));
        await change(state, ({ shelf }) => expect(shelf.put(4)).toBe(false));
        const { shelf } = state.close();
        expect([shelf instanceof Shelf, shelf.limit]).toEqual([true, 2]);
        expect(Array.from(shelf, ({ n }) => n)).toEqual([1, 2, 3]);
      }
      expect([base.shelf.limit, base.shelf.length]).toEqual([4, 1]);
    });

    test("a list's own functions work on the list that has them", async () => {
      class Numbers extends Array<number> {
        total = (): number => this.reduce((sum, one) => sum + one, 0);
      }
      const base = { numbers: Numbers.from([1, 2]) as Numbers };
      for (const state of [new EpisodeState(base), new EpisodeState(base)]) {
        await change(state, ({ numbers }) => {
          numbers.push(10);
          expect(numbers.total()).toBe(13);
        });
        expect(state.close().numbers.total()).toBe(13);
      }
      expect(base.numbers.total()).toBe(3);
    });
  });

  test("refuses to write a list with an own function if its constructor takes parameters", async () => {
    class Line extends Array<string> {
      isFull: () => boolean;
      constructor(limit: number) {
        super();
        this.isFull = () => this.length >= limit;
      }
    }
    const line = new Line(2);
    line.push("Ann");
    const state = new EpisodeState({ line });
    const call = change(state, (draft) => void draft.line.push("Bo"));
    await expect(call).rejects.toThrow(
      "Cannot copy a list of Line of the state, as it is written: its own isFull works on the list that it was " +
        "made with, expected a method of the class (isFull() { … })",
    );
    expect([...state.close().line]).toEqual(["Ann"]);
  });

  test("accepts a circular state", async () => {
    interface Ring {
      next?: Ring;
      n: number;
    }
    const ring: Ring = { n: 1 };
    ring.next = ring;
    const state = new EpisodeState(ring);
    await state.change(
      async (draft) => {
        draft.next!.n = 2;
        draft.next = draft;
      },
      () => true,
    );
    expect(state.close().next?.next?.n).toBe(2);
  });
});

function textOf({ byName, list, map, set, days, bytes }: State): string {
  const numbers = bytes.map((one) => [...one]);
  return JSON.stringify([byName, list, [...map], [...set], days, numbers]);
}
