"""bytearray and bytes: sieves, checksums, ciphers."""

from __future__ import annotations

from tests.users.corpus import use


@use((50,))
def primes_by_a_byte_array(n):
    prime = bytearray([1]) * (n + 1)
    prime[0] = prime[1] = 0
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = bytes(len(prime[i * i :: i]))
    return [i for i in range(n + 1) if prime[i]], prime.count(1), sum(prime)


@use((b"hello", 7))
def each_byte_with_a_key(data, key):
    out = bytearray()
    for byte in data:
        out.append(byte ^ key)
    whole = bytes(out) + b"." * key
    return whole, out, out.hex(), whole[1:3], out == bytearray(b"obkkh"), isinstance(out, bytearray)


@use((b"ab", 3))
def bytes_of_others(data, key):
    return bytes(c ^ key for c in data)


@use(([1, 2, 3],), ([1, 2, 300],))
def bytes_changed(values):
    found = bytearray(4)
    for k, v in enumerate(values):
        found[k] = v
    found.extend(values)
    found += b"ab"
    found.insert(1, 9)
    last = found.pop()
    del found[0], found[2:4]
    found[:2] = [5]
    found.reverse()
    return found, last, 5 in found, found.find(9), found[::2], list(found), b"<" + bytes(values)


@use((9,), (-2,))
def a_byte_outside(k):
    found = bytearray(5)
    found[k] = 7
    return found


@use((b"RIFF\x24\x01data", 4), (b"RIFF", 4), (b"RIFF\x24\x01", -2))
def bytes_read_at_places_of_the_program(data, k):
    first = 0
    while data[first] < 70 and first < k:
        first += 1
    head = data[k:k + 2]
    return head, data[k], first, data.startswith(b"RI"), b"FI".find(data[2]), len(b"-".join([head]))


@use((70000,), (-5,), (2**40,), (255,))
def numbers_as_bytes(n):
    small = (n % 65536).to_bytes(2, "little")
    signed = n.to_bytes(4, "big", signed=True)
    back = int.from_bytes(signed, "big", signed=True), int.from_bytes(small, "little")
    return small + signed, back, int.from_bytes([n % 256, 1]), n.to_bytes(4)


MESSAGE = bytes(range(1, 9)) * 3


@use((MESSAGE,), (MESSAGE[:20],), (b"\x02\x03ab",))
def fields_of_a_message(data):
    i, found = 0, []
    while i < len(data):
        tag, size = data[i], data[i + 1]
        value = data[i + 2 : i + 2 + size]
        if len(value) < size:
            raise ValueError(f"a short field at {i}")
        found.append((tag, int.from_bytes(value, "big")))
        i += 2 + size
    return found


@use((b"one two two three and so on", b"tw"), (b"one two two three and so on", b"xy"), long=True)
def bytes_in_bytes(data, part):
    return (
        data.find(part), data.rfind(part), data.count(part), part in data, data.find(part, 5),
        data.find(part, -9, -2), data.count(111), data.startswith((part, b"one")), data.count(b""),
    )


@use((b"one two two three and so on", {b"one two two three and so on": 3}))
def bytes_that_are_looked_up(data, table):
    return table[data], data.decode().upper(), data


@use((300,), (-1,), long=True)
def what_no_byte_is(number):
    return bytes([number])


@use((300,), (255,), long=True)
def what_no_byte_of_an_array_is(number):
    return bytearray([number])


@use((["abc", "", "naïve", "5 €", "😀!"],), ([],), long=True)
def hashes_of_encoded_words(words):
    found = []
    for word in words:
        number = 2166136261
        for byte in word.encode():
            number = (number ^ byte) * 16777619 & 0xFFFFFFFF
        found.append((number, word.encode("utf-8").hex()))
    return found


@use((b"hello",), ("h\u00e9 \u20ac \U0001f600".encode(),), (b"\xff",), (b"\xe2\x82",),
     (b"\xed\xa0\x80",), (b"\xe2\x28\xa1",), (bytearray(b"hey"),), (b"",))
def texts_of_bytes(data):
    return data.decode(), len(data)


@use((b"abc",), (b"ab\x80",))
def texts_of_few_characters(data):
    found = [data.decode("latin-1")]
    try:
        found.append(data.decode("ascii"))
    except UnicodeDecodeError:
        found.append("no ASCII")
    return found, "h\u00e9".encode().decode() == "h\u00e9"


@use((b" xxabAB cab  ",), (bytearray(b"xab x"),), (b"",), long=True)
def stripped_and_replaced(data):
    stripped = data.strip(), data.lstrip(b"x"), data.rstrip(b" x"), data.upper(), data.lower()
    replaced = data.replace(b"a", b"bcd"), data.replace(b"", b"-"), data.replace(b"ab", b"", 1)
    return stripped, replaced
