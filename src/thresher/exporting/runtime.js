/* A model in JavaScript, written by thresher. It needs nothing else.
 *
 *   margins(row)   the weighted sums, one for each of outputs
 *   predict(row)   probabilities, or means
 *   label(row)     the class, one of labels
 *
 * A row is an object with the names in columns, or an array in their order. A value is a number, a string, a
 * boolean, or a Uint8Array for text that is not UTF-8; null, undefined, NaN and "" are missing. If features have
 * ids, a row is an array of pairs [id, value]. An Error tells which column holds something else. A column that an
 * object does not name is missing, but an object that names other things only is an Error.
 */
const thresher = (() => {
  "use strict";

  const model = /* @model */ null;

  /* ---- numbers of 64 bits, as two of 32 bits: results are in H and L ---- */

  let H = 0;
  let L = 0;

  function set(high, low) {
    H = high >>> 0;
    L = low >>> 0;
  }

  function add(high, low) {
    const sum = L + (low >>> 0);
    set(H + high + (sum > 0xffffffff ? 1 : 0), sum);
  }

  function times(high, low) {
    const a = L & 0xffff, b = L >>> 16, c = low & 0xffff, d = low >>> 16;
    const first = b * c + ((a * c) >>> 16);
    const second = a * d + (first & 0xffff);
    const top = b * d + (first >>> 16) + (second >>> 16);
    set(top + Math.imul(H, low) + Math.imul(L, high), Math.imul(L, low));
  }

  function turn(by) {
    const swap = by >= 32, high = swap ? L : H, low = swap ? H : L, left = by & 31;
    if (left === 0) set(high, low);
    else set((high << left) | (low >>> (32 - left)), (low << left) | (high >>> (32 - left)));
  }

  function shiftXor(by) {
    set(by >= 32 ? H : H ^ (H >>> by), by >= 32 ? L ^ (H >>> (by - 32)) : L ^ ((L >>> by) | (H << (32 - by))));
  }

  function finish() {
    shiftXor(33);
    times(0xff51afd7, 0xed558ccd);
    shiftXor(33);
    times(0xc4ceb9fe, 0x1a85ec53);
    shiftXor(33);
  }

  /* ---- tables ---- */

  const DIGITS = new Uint8Array(128);
  [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].forEach((digit, k) => {
    DIGITS[digit.charCodeAt(0)] = k;
  });

  function decoded(text) {
    const digits = text.replace(/=+$/, ""), out = new Uint8Array((digits.length * 3) >> 2);
    for (let k = 0, bits = 0, at = 0; k < digits.length; k++) {
      bits = ((bits << 6) | DIGITS[digits.charCodeAt(k)]) & 0xffffff;
      if (k & 3) out[at++] = bits >>> (6 - 2 * (k & 3));
    }
    return new DataView(out.buffer);
  }

  function words(text) {
    const view = decoded(text), count = view.byteLength / 8;
    const found = { high: new Uint32Array(count), low: new Uint32Array(count), count };
    for (let k = 0; k < count; k++) {
      found.low[k] = view.getUint32(8 * k, true);
      found.high[k] = view.getUint32(8 * k + 4, true);
    }
    return found;
  }

  function numbers(text, wide) {
    const view = decoded(text), found = wide ? new Float64Array(view.byteLength / 8) : new Float32Array(view.byteLength / 4);
    for (let k = 0; k < found.length; k++) found[k] = wide ? view.getFloat64(8 * k, true) : view.getFloat32(4 * k, true);
    return found;
  }

  const WIDE = model.dtype === "float64", OUTPUTS = model.outputs.length, COLUMNS = model.columns;
  const MODELS = model.models.map((one) => ({
    keys: words(one.keys),
    weights: numbers(one.weights, WIDE),
    intercepts: numbers(one.intercepts, WIDE),
    meanKeys: words(one.mean_keys),
    means: numbers(one.means, true),
    divisorKeys: words(one.divisor_keys),
    divisors: numbers(one.divisors, true),
  }));

  /* The place of a key among ascending ones; -1: it is not there. */
  function placeOf(keys, high, low) {
    let begin = 0, end = keys.count;
    while (begin < end) {
      const middle = (begin + end) >>> 1;
      if (keys.high[middle] < high || (keys.high[middle] === high && keys.low[middle] < low)) begin = middle + 1;
      else end = middle;
    }
    return begin < keys.count && keys.high[begin] === high && keys.low[begin] === low ? begin : -1;
  }

  /* ---- cells ---- */

  function encode(code, out) {
    if (code < 0x80) out.push(code);
    else if (code < 0x800) out.push(0xc0 | (code >> 6), 0x80 | (code & 63));
    else if (code < 0x10000) out.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    else out.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
  }

  function bytesOf(text) {
    if (typeof text !== "string") return text;
    const out = [];
    for (const letter of text) encode(letter.codePointAt(0), out);
    return out;
  }

  function wordAt(bytes, at, end) {
    let low = 0, high = 0;
    for (let k = 0; k < 4 && at + k < end; k++) low |= bytes[at + k] << (8 * k);
    for (let k = 4; k < 8 && at + k < end; k++) high |= bytes[at + k] << (8 * (k - 4));
    set(high, low);
  }

  /* The first half of MurmurHash3 x64_128 of bytes [at, end), in H and L. */
  function murmur(bytes, at, end, seed) {
    const size = end - at;
    let hH = seed[0], hL = seed[1], kH = hH, kL = hL;
    function ends(from) {
      wordAt(bytes, from + 8, end);
      times(0x4cf5ad43, 0x2745937f);
      turn(33);
      times(0x87c37b91, 0x114253d5);
      set(H ^ kH, L ^ kL);
      kH = H;
      kL = L;
      wordAt(bytes, from, end);
      times(0x87c37b91, 0x114253d5);
      turn(31);
      times(0x4cf5ad43, 0x2745937f);
      set(H ^ hH, L ^ hL);
      hH = H;
      hL = L;
    }
    for (; end - at >= 16; at += 16) {
      const beforeH = kH, beforeL = kL;
      ends(at);
      set(hH, hL);
      turn(27);
      add(beforeH, beforeL);
      times(0, 5);
      add(0, 0x52dce729);
      hH = H;
      hL = L;
      set(kH, kL);
      turn(31);
      add(hH, hL);
      times(0, 5);
      add(0, 0x38495ab5);
      kH = H;
      kL = L;
    }
    ends(at);
    set(hH, hL ^ size);
    add(kH, kL ^ size);
    hH = H;
    hL = L;
    set(kH, kL ^ size);
    add(hH, hL);
    kH = H;
    kL = L;
    finish();
    const lastH = H, lastL = L;
    set(hH, hL);
    finish();
    add(lastH, lastL);
  }

  /* ---- numbers: the nearest float ---- */

  const NUMBER = /^([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?$/;
  const view = new DataView(new ArrayBuffer(4));

  function nextFloat(value, up) {
    view.setFloat32(0, value);
    view.setUint32(0, value === 0 ? 1 : view.getUint32(0) + (up ? 1 : -1));
    return view.getFloat32(0);
  }

  /* Compare digits * 10^power with a double, exactly. */
  function compared(digits, power, number) {
    let left = BigInt(digits || "0"), twos = 0;
    while (!Number.isInteger(number)) {
      number *= 2;
      twos++;
    }
    let right = BigInt(number);
    left *= 2n ** BigInt(twos);
    if (power < 0) right *= 10n ** BigInt(-power);
    else left *= 10n ** BigInt(power);
    return left < right ? -1 : left > right ? 1 : 0;
  }

  function floatOf(found, size) {
    const near = Math.fround(size);
    if (near === size || size === Infinity) return near;
    if (near === Infinity) {
      if (size > 3.4028235677973366e38) return near;
    } else {
      const other = nextFloat(near, size > near);
      if ((near + other) / 2 !== size) return near;
    }
    const digits = found[2].replace(".", ""), dot = found[2].indexOf(".");
    const power = Number(found[3] || 0) - (dot < 0 ? 0 : found[2].length - dot - 1), side = compared(digits, power, size);
    if (near === Infinity) return side < 0 ? 3.4028234663852886e38 : near;
    if (side === 0) return near;
    return side > 0 === size > near ? nextFloat(near, size > near) : near;
  }

  /* The nearest double to the first 19 digits. */
  function wideOf(found) {
    const digits = found[2].replace(".", "").replace(/^0+/, ""), dot = found[2].indexOf(".");
    const power = Number(found[3] || 0) - (dot < 0 ? 0 : found[2].length - dot - 1);
    return Number(`${digits.slice(0, 19)}e${power + Math.max(digits.length - 19, 0)}`);
  }

  /* Text as it is, or a letter for each byte. */
  function asText(cell) {
    return typeof cell === "string" ? cell : Array.from(cell, (byte) => String.fromCharCode(byte)).join("");
  }

  /* A cell as [float, double]; undefined: it is no finite number. */
  function numberOf(cell) {
    if (typeof cell === "boolean") return [Number(cell), Number(cell)];
    if (typeof cell === "number") return Number.isFinite(Math.fround(cell)) ? [Math.fround(cell), cell] : undefined;
    const text = asText(cell), found = NUMBER.exec(text.replace(/^[ \t]+|[ \t]+$/g, ""));
    if (found) {
      const size = Number(found[2] + (found[3] ? `e${found[3]}` : "")), sign = found[1] === "-" ? -1 : 1;
      const value = floatOf(found, size);
      if (value === Infinity) return undefined;
      return [sign * value, sign * (isFar(value) ? wideOf(found) : value)];
    }
    const word = text.replace(/^ +| +$/g, "").toLowerCase();
    return word === "true" ? [1, 1] : word === "false" ? [0, 0] : undefined;
  }

  const isFar = (value) => Math.abs(value) >= 65536 && Math.abs(value) < 1180591620717411303424;
  const lost = (wide, value) => (isFar(value) ? Math.fround(wide - value) : 0);

  /* ---- one spelling for each value of a category ---- */

  function spelledNumber(text) {
    const found = /^([+-]?)(?:([0-9]+)(\.?)([0-9]*)|(\.)([0-9]+))(?:[eE]([+-]?[0-9]{1,6}))?$/.exec(text);
    if (!found) return null;
    const fraction = found[4] || found[6] || "", whole = !(found[3] || found[5] || found[7]);
    let digits = ((found[2] || "") + fraction).replace(/^0+/, ""), power = Number(found[7] || 0) - fraction.length;
    if (digits.length > 40) return null;
    const kept = digits.replace(/0+$/, "");
    power += digits.length - kept.length;
    digits = kept;
    if (!digits) return "0";
    if (!whole && digits.length < 20 && power >= 0 && power < 20) {
      const size = Number(digits) * 10 ** power;
      if (size >= 9007199254740992 && size <= 1.84e19) {
        digits = BigInt(Number(`${digits}e${power}`)).toString();
        power = 0;
      }
    }
    const before = digits.length + power, sign = found[1] === "-" ? "-" : "";
    if (before > 0 && before <= 21) {
      if (digits.length <= before) return sign + digits + "0".repeat(before - digits.length);
      return `${sign}${digits.slice(0, before)}.${digits.slice(before)}`;
    }
    if (before > -6 && before <= 0) return `${sign}0.${"0".repeat(-before)}${digits}`;
    return `${sign}${digits[0]}${digits.length > 1 ? "." : ""}${digits.slice(1)}e${before - 1}`;
  }

  function spelled(cell) {
    const text = asText(cell).replace(/^ +| +$/g, "");
    if (!text) return cell;
    if (/^(?:0|[1-9][0-9]{0,20})$/.test(text)) return text;
    if (/^(?:true|false|nan|-?inf)$/i.test(text)) return text.toLowerCase();
    return spelledNumber(text) ?? cell;
  }

  /* ---- n-grams ---- */

  function letterOf(code) {
    let begin = 0, end = model.letters.length;
    while (begin < end) {
      const middle = (begin + end) >>> 1;
      if (model.letters[middle][1] < code) begin = middle + 1;
      else end = middle;
    }
    if (begin === model.letters.length || code < model.letters[begin][0]) return -1;
    return model.ngrams.lowercase ? code + model.letters[begin][2] : code;
  }

  /* The character at a place as [code, size]; code -1: it is not UTF-8. */
  function characterAt(bytes, at) {
    const first = bytes[at], size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (size === 1) return [first, 1];
    if (first < 0xc2 || first > 0xf4 || bytes.length - at < size) return [-1, 1];
    let code = first & (0xff >> (size + 1));
    for (let k = 1; k < size; k++) {
      if ((bytes[at + k] & 0xc0) !== 0x80) return [-1, 1];
      code = (code << 6) | (bytes[at + k] & 63);
    }
    const wrong = (size === 3 && code < 0x800) || (size === 4 && code < 0x10000) || code > 0x10ffff;
    return wrong || (code >= 0xd800 && code < 0xe000) ? [-1, 1] : [code, size];
  }

  function addRuns(row, bytes, begins, [low, high], gap, seed) {
    for (let first = 0; high && first < begins.length - 1; first++)
      for (let length = low; length <= high && first + length < begins.length; length++) {
        murmur(bytes, begins[first], begins[first + length] - gap, seed);
        row.push(entry(H, L, 1));
      }
  }

  function addText(row, bytes, seed) {
    const grams = model.ngrams, written = [], begins = [0], found = [];
    for (let at = 0, word = []; at <= bytes.length; ) {
      const [code, size] = at < bytes.length ? characterAt(bytes, at) : [-1, 1], letter = code < 0 ? -1 : letterOf(code);
      if (letter >= 0) word.push(letter);
      else {
        if (word.length >= grams.shortest) {
          for (const one of word) encode(one, written);
          written.push(32);
          begins.push(written.length);
        }
        word = [];
      }
      at += size;
    }
    addRuns(found, written, begins, grams.words, 1, seed);
    if (grams.chars[1]) {
      const stop = Math.max(written.length - 1, 0), starts = [];
      for (let k = 0; k < stop; k++) if ((written[k] & 0xc0) !== 0x80) starts.push(k);
      addRuns(found, written, [...starts, stop], grams.chars, 0, [seed[0], (seed[1] ^ 1) >>> 0]);
    }
    let squares = 0;
    const kept = merged(found);
    for (const one of kept) {
      if (grams.scale === "binary") one.value = 1;
      if (grams.scale === "log") one.value = Math.fround(1 + Math.log(one.value));
      squares += one.value * one.value;
    }
    const by = grams.norm && squares > 0 ? 1 / Math.sqrt(squares) : 1;
    for (const one of kept) {
      one.value = Math.fround(one.value * by);
      row.push(one);
    }
  }

  /* ---- features of a row ---- */

  function entry(high, low, value, rest = 0) {
    return { high: (high & model.mask[0]) >>> 0, low: (low & model.mask[1]) >>> 0, value, rest };
  }

  function finite(value) {
    if (!Number.isFinite(value)) throw new RangeError("a sum or product of values is not finite");
    return value;
  }

  /* Entries sorted by key, those of equal keys added up. */
  function merged(row) {
    const out = [];
    row.sort((a, b) => a.high - b.high || a.low - b.low);
    for (const one of row) {
      const last = out[out.length - 1];
      if (last && last.high === one.high && last.low === one.low) last.value = finite(Math.fround(last.value + one.value));
      else out.push({ ...one });
    }
    return out;
  }

  function binOf(value) {
    const size = Math.abs(value), root = Math.log(size), bin = Math.floor(size > 2 ? root * root + 2 : size);
    return String(value < 0 && bin ? -bin : bin);
  }

  function isMissing(cell) {
    if (cell === null || cell === undefined || cell === "" || cell !== cell) return true;
    if (typeof cell === "number" || typeof cell === "boolean") return false;
    return /^[ \t]*$/.test(asText(cell));
  }

  function addCell(row, column, given) {
    let cell = given;
    if (typeof cell === "string" || cell instanceof Uint8Array) {
      const same = (one) => (typeof cell === "string" ? one === cell : asText(bytesOf(one)) === asText(cell));
      if (model.missing.some(same)) cell = "";
      else if (column.spelled) cell = spelled(cell);
    }
    const wrong = () => {
      const takes = column.kind === "numeric" || column.numbers || column.kind === "bins" ? "a finite number or a boolean" : "text, a number or a boolean";
      const shown = typeof given === "string" ? JSON.stringify(given) : ArrayBuffer.isView(given) ? asText(given) : typeof given === "object" ? "an object" : typeof given === "bigint" ? "a BigInt" : String(given);
      return new Error(`column ${JSON.stringify(column.name)} takes ${takes}, not ${shown}`);
    };
    const plain = cell === null || /^(?:undefined|number|boolean|string)$/.test(typeof cell) || ArrayBuffer.isView(cell);
    if (!plain || (column.numbers && (cell === Infinity || cell === -Infinity || /^(?:nan|-?inf)$/.test(String(cell)) && cell === cell))) throw wrong();
    const missing = isMissing(cell);
    if (missing && !(column.kind === "numeric" && model.missing_is_mean)) return;
    if (column.kind === "categorical" || column.kind === "text") {
      const bytes = bytesOf(typeof cell === "number" || typeof cell === "boolean" ? String(cell).replace("e+", "e") : cell);
      if (column.kind === "text") return addText(row, bytes, column.seed);
      murmur(bytes, 0, bytes.length, column.seed);
      row.push(entry(H, L, 1));
      return;
    }
    const [value, wide] = (missing ? [0, 0] : numberOf(cell)) || [];
    if (value === undefined) throw wrong();
    if (column.kind === "bins") {
      const name = bytesOf(binOf(value));
      murmur(name, 0, name.length, column.seed);
      row.push(entry(H, L, 1));
    } else if (missing || value !== 0) row.push(entry(column.key[0], column.key[1], value, lost(wide, value)));
  }

  function addProduct(row, factors) {
    let high = 0, low = 0, value = factors[0].value;
    for (const one of factors) {
      set(one.high, one.low);
      finish();
      add(high, low);
      high = H;
      low = L;
    }
    if (factors.length === 2) add(0x9e3779b9, 0x7f4a7c15);
    else add(0xd1b54a32, 0xd192ed03);
    finish();
    for (const one of factors.slice(1)) value = finite(Math.fround(value * one.value));
    row.push(entry(H, L, value));
  }

  /* Products of the features of columns, of which `parts` are lists; of the same column, each pair once. */
  function addProducts(row, parts) {
    const same = (column) => (COLUMNS[column].kind === "numeric" || COLUMNS[column].kind === "text" ? 0 : 1);
    for (const [s, t, u] of model.products)
      for (let i = 0; i < parts[s].length; i++)
        for (let j = s === t ? i + same(s) : 0; j < parts[t].length; j++) {
          const a = parts[s][i], b = parts[t][j];
          if (u === undefined) addProduct(row, [a, b]);
          else {
            const first = u === t ? j + same(t) : u === s ? i + same(s) : 0;
            for (let k = first; k < parts[u].length; k++) addProduct(row, [a, b, parts[u][k]]);
          }
        }
  }

  function featuresOfCells(given) {
    const row = [], parts = [], listed = Array.isArray(given);
    const has = (column) => listed || Object.prototype.hasOwnProperty.call(given, column.name);
    const inherits = (column) => !has(column) && column.name in given && !(column.name in {});
    const plain = (above) => above === null || Object.getPrototypeOf(above) === null;
    if (given === null || typeof given !== "object" || COLUMNS.some(inherits) || !(listed || COLUMNS.some(has) || Object.keys(given).length || plain(Object.getPrototypeOf(given))))
      throw new Error("a row is an object that has the columns as properties of its own, or an array of values");
    if (!listed && Object.keys(given).length && !COLUMNS.some(has))
      throw new Error(`no column is named ${Object.keys(given).join(", ")}; there are ${COLUMNS.map((one) => one.name).join(", ")}`);
    if (listed && given.length > COLUMNS.length) throw new Error(`a row has ${COLUMNS.length} values, not ${given.length}`);
    COLUMNS.forEach((column, c) => {
      const part = [], there = has(column);
      addCell(part, column, listed ? given[c] : there ? given[column.name] : undefined);
      parts.push(part);
      row.push(...part);
    });
    if (model.products.length) addProducts(row, parts);
    return row;
  }

  function wholeOf(id) {
    let found = -1n;
    try {
      found = BigInt(id);
    } catch {
      /* it is none */
    }
    if (found < 0n || found >= 1n << 64n) throw new Error(`${String(id)} is no id: a whole number below 2^64`);
    return found;
  }

  function featuresOfIds(given) {
    if (!Array.isArray(given) || !given.every(Array.isArray)) throw new Error("a row is an array of pairs [id, value]");
    return given.map(([id, value]) => {
      const float = finite(Math.fround(value)), whole = wholeOf(id);
      return entry(Number(whole >> 32n), Number(whole & 0xffffffffn), float, lost(value, float));
    });
  }

  /* ---- margins ---- */

  /* The place of the weight of a feature, and 1 or -1, by which its value is multiplied. */
  function weightOf(from, high, low) {
    if (!model.store) return [placeOf(from.keys, high, low), 1];
    let sign = 1;
    set(high ^ model.store.seed[0], low ^ model.store.seed[1]);
    shiftXor(32);
    times(0x9e3779b9, 0x7f4a7c15);
    if (model.store.signed) {
      shiftXor(29);
      times(0xbf58476d, 0x1ce4e5b9);
      shiftXor(32);
      sign = L & 1 ? 1 : -1;
    }
    return [placeOf(from.keys, 0, H >>> (32 - model.store.bits)), sign];
  }

  function centred(from, row) {
    const out = [], gaps = model.missing_is_mean;
    let p = 0;
    for (let c = 0; c <= from.meanKeys.count; c++) {
      const last = c === from.meanKeys.count, high = from.meanKeys.high[c], low = from.meanKeys.low[c];
      for (; p < row.length && (last || row[p].high < high || (row[p].high === high && row[p].low < low)); p++)
        if (!gaps || row[p].value !== 0) out.push(row[p]);
      if (last) break;
      const there = p < row.length && row[p].high === high && row[p].low === low;
      const x = there ? row[p].value + row[p].rest : 0, value = Math.fround(x - from.means[c]);
      if (!(gaps && there && x === 0) && value !== 0) out.push(entry(high, low, value));
      if (there) p++;
    }
    return out;
  }

  function divided(from, one) {
    const place = placeOf(from.divisorKeys, one.high, one.low);
    return place < 0 ? one.value : Math.fround(one.value / from.divisors[place]);
  }

  function marginsOf(from, features) {
    const sums = new Array(OUTPUTS).fill(0), shared = new Map();
    let row = merged(features.filter((one) => weightOf(from, one.high, one.low)[0] >= 0));
    if (from.means.length) row = centred(from, row);
    for (const one of row) {
      const [place, sign] = weightOf(from, one.high, one.low), value = sign * (from.divisors.length ? divided(from, one) : one.value);
      shared.set(place, shared.has(place) ? Math.fround(shared.get(place) + value) : value);
    }
    for (const [place, value] of shared)
      for (let j = 0; j < OUTPUTS; j++) {
        const product = from.weights[place * OUTPUTS + j] * value;
        sums[j] += WIDE ? product : Math.fround(product);
      }
    return sums.map((sum, j) => sum + from.intercepts[j]);
  }

  function margins(row) {
    const features = COLUMNS.length ? featuresOfCells(row) : featuresOfIds(row), each = MODELS.map((one) => marginsOf(one, features));
    if (each.length === 1) return each[0];
    return each[0].map((_, j) => each.slice(1).reduce((sum, one) => sum + one[j], each[0][j]) / each.length);
  }

  function logOdds(m) {
    return model.link.name === "calibrated" ? model.link.by * m + model.link.plus : m;
  }

  function predict(row) {
    const found = margins(row), { name, by } = model.link;
    if (name === "softmax") {
      const z = found.map((m) => by * m), top = Math.max(...z), raised = z.map((one) => Math.exp(one - top));
      const total = raised.reduce((sum, one) => sum + one, 0);
      return raised.map((one) => one / total);
    }
    return found.map((m) => {
      if (name === "sigmoid" || name === "calibrated") {
        const z = logOdds(m), e = Math.exp((name === "sigmoid" ? by : 1) * -Math.abs(z));
        return z > 0 ? 1 / (1 + e) : e / (1 + e);
      }
      if (name === "ramp") return 0.5 * (1 + Math.min(Math.max(m, -1), 1));
      return name === "exp" ? Math.exp(m + by) : m;
    });
  }

  function label(row) {
    const found = margins(row);
    if (model.kind === "labels") return model.outputs.filter((_, j) => found[j] > 0);
    if (!model.labels.length) return predict(row);
    return model.labels[OUTPUTS === 1 ? Number(logOdds(found[0]) > 0) : found.indexOf(Math.max(...found))];
  }

  return { columns: COLUMNS.map((one) => one.name), outputs: model.outputs, labels: model.labels, margins, predict, label };
})();
