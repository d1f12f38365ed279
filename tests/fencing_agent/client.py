"""A client of fencing-agent, made of the installed definition alone: what it hears, one JSON object a line.

usage: client.py SOCKET DEFINITION [with-list]

The first line is what GetAll returned once the stream stood, then one line for each event, and at the end the stream's status. With the third
word, each event's line has the names that GetAll returned after it.
"""

import importlib
import json
import pathlib
import sys
import tempfile
import time

import grpc
import grpc_tools
from google.protobuf import empty_pb2
from grpc_tools import protoc


def show(**line):
    print(json.dumps(line), flush=True)


def of_node(node):
    gone = node.prevDisconnectTime.ToNanoseconds() / 1e9 if node.HasField("prevDisconnectTime") else None
    return {"name": node.name, "addresses": dict(node.addresses), "prevDisconnectTime": gone}


def compiled(definition):
    """The modules that grpc_tools makes of the definition."""
    place = tempfile.mkdtemp()
    common = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    words = ["protoc", f"-I{definition.parent}", f"-I{common}", f"--python_out={place}", f"--grpc_python_out={place}", definition.name]
    if protoc.main(words) != 0:
        sys.exit("the definition does not compile")
    sys.path.insert(0, place)
    return importlib.import_module(f"{definition.stem}_pb2"), importlib.import_module(f"{definition.stem}_pb2_grpc")


def main():
    socket, definition, with_list = sys.argv[1], pathlib.Path(sys.argv[2]), "with-list" in sys.argv
    messages, services = compiled(definition)
    # grpcio sends the path of the socket as the authority, percent-encoded, and HTTP/2 in Rust (the crate h2) refuses that.
    options = [("grpc.default_authority", "localhost")]
    with grpc.insecure_channel(f"unix:{socket}", options=options) as channel:
        fencing = services.FencingStub(channel)
        events = fencing.StreamEvents(empty_pb2.Empty())
        # The headers come once the subscription stands.
        events.initial_metadata()
        show(nodes=[of_node(node) for node in fencing.GetAll(empty_pb2.Empty(), timeout=5).nodes])
        try:
            for event in events:
                arrived = time.time()
                show(
                    type=messages.EventType.Name(event.type),
                    node=of_node(event.node),
                    time=event.time.ToNanoseconds() / 1e9,
                    source=event.sourceName if event.HasField("sourceName") else None,
                    arrived=arrived,
                    now=[node.name for node in fencing.GetAll(empty_pb2.Empty(), timeout=5).nodes] if with_list else None,
                )
        except grpc.RpcError as error:
            show(code=error.code().name)


main()
