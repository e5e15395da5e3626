"""Sends the messages of a topic of Kafka to a server that learns, which learns each once.

Run it: ``python topic_to_server.py broker:9092 clicks 127.0.0.1:8000`` (needs ``thresher[kafka]``).

A message is one or more rows of JSON with labels. Its key is TOPIC/PARTITION/OFFSET, which the server writes
to its log in one record with the rows. Only then is the offset committed. If something is killed in between,
the message is sent again, and the server knows the key.
"""

from __future__ import annotations

import json
import sys
import time
from http.client import HTTPConnection, HTTPException

from confluent_kafka import OFFSET_STORED, Consumer, TopicPartition


def send(server: HTTPConnection, key: str, rows: bytes) -> None:
    """Send rows until there is an answer. Bad rows are told, and left out."""
    headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
    status, told, wait = 503, "", 0.0
    while status in (429, 503):
        time.sleep(wait)
        try:
            server.request("POST", "/learn", rows, headers)
            answer = server.getresponse()
            status, told, wait = answer.status, answer.read().decode().strip(), 1.0
        except (OSError, HTTPException):  # it is restarted
            server.close()
            status, wait = 503, 0.1
    if status in (400, 413) or (status == 200 and json.loads(told)["refused"]):
        print(f"{key}: {told}", file=sys.stderr)
    elif status != 200:
        raise RuntimeError(f"{key}: {told}")


def main(broker: str, topic: str, server: str) -> None:
    """Send what a topic holds, and what comes, from where the last process ended."""
    settings = {"bootstrap.servers": broker, "group.id": "thresher", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    partitions = consumer.list_topics(topic).topics[topic].partitions
    consumer.assign([TopicPartition(topic, one, OFFSET_STORED) for one in partitions])
    connection = HTTPConnection(server, timeout=60)
    while True:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if error := message.error():
            print(f"{topic}: {error}", file=sys.stderr)
            continue
        if rows := message.value():
            send(connection, f"{topic}/{message.partition()}/{message.offset()}", rows)
        consumer.commit(message=message)


if __name__ == "__main__":
    main(*sys.argv[1:])
