"""The studio: play Tetris in a browser, be learnt as you play, and watch your understudy take the stage.

`understudy studio` starts it. It needs the extra `studio`; nothing else of the project imports this room.
"""
